// The data, from columns of text to arrays of numbers, with what is derived from them once.
//
// A column is base64 of bytes: for each row the difference to the row before, zigzag (0, -1, 1, -2, … become 0, 1, 2, 3, …),
// in groups of seven bits, lowest first, the eighth bit set on all but the last. A value stands as itself plus one; null is zero.

const data = JSON.parse($("data").textContent);
$("data").remove();
const T = WORDS[data.lang] ?? WORDS.en;
const text = (index) => data.strings[index];

/** A column as numbers; `none` stands for null. */
function column(table, name, Kind = Float64Array, none = 0) {
  const { rows, columns } = data[table];
  const packed = atob(columns[name]), values = new Kind(rows);
  let at = 0, last = 0;
  for (let row = 0; row < rows; row++) {
    let zigzag = 0, scale = 1, byte;
    do {
      byte = packed.charCodeAt(at++);
      zigzag += (byte & 127) * scale;
      scale *= 128;
    } while (byte > 127);
    last += zigzag % 2 ? -(zigzag + 1) / 2 : zigzag / 2;
    values[row] = last === 0 ? none : last - 1;
  }
  delete columns[name];
  return values;
}

/** A table as an object of arrays; `kinds` says which columns, and of what. */
function table(name, kinds) {
  const { rows } = data[name];
  return { rows, ...Object.fromEntries(Object.entries(kinds).map(([key, kind]) => [key, column(name, key, ...[kind].flat())])) };
}

const never = [Float64Array, Infinity];

/** Stays of storages in the order of their beginning. */
const stays = table("storages", {
  id: Float64Array, device: Uint8Array, bytes: Float64Array, size: Float64Array, address: Float64Array, from: Float64Array, to: never, before: Uint8Array,
  op: Uint32Array, site: Uint32Array, scope: Uint32Array, label: Uint32Array, thread: Float64Array, version: Float64Array, moves: Uint32Array,
});
const views = table("views", {
  stay: [Float64Array, -1], from: Float64Array, to: never, op: Uint32Array, site: Uint32Array, scope: Uint32Array, label: Uint32Array,
  view: Uint8Array, dtype: Uint32Array, layout: Uint32Array, offset: Float64Array,
});
const segments = table("segments", { device: Uint8Array, address: Float64Array, size: Float64Array, kind: Uint32Array, from: Float64Array, to: never });
const copies = table("copies", { time: Float64Array, bytes: Float64Array, reason: Uint32Array, op: Uint32Array, site: Uint32Array, from: [Float64Array, -1], to: [Float64Array, -1] });
const writes = table("writes", { time: Float64Array, stay: [Float64Array, -1], op: Uint32Array, site: Uint32Array });
const marks = table("marks", { time: Float64Array, kind: Uint32Array, text: Uint32Array, value: [Float64Array, NaN], thread: Float64Array });

// ---- Changes ---------------------------------------------------------------------------------------------------
//
// Moment 0 is the beginning; moment m is after change m. A change is a stay that begins, +(stay + 1), or ends, -(stay + 1).

const M = data.changes.rows;
const changes = new Int32Array(M + 1), times = new Float64Array(M + 1);
const bornAt = new Int32Array(stays.rows), diedAt = new Int32Array(stays.rows).fill(M + 1);
{
  const ago = column("changes", "ago", Uint32Array);
  let begun = 0;
  while (begun < stays.rows && stays.before[begun]) begun++;
  for (let m = 1; m <= M; m++) {
    const stay = ago[m - 1] ? begun - ago[m - 1] : begun++;
    changes[m] = ago[m - 1] ? -stay - 1 : stay + 1;
    times[m] = ago[m - 1] ? stays.to[stay] : stays.from[stay];
    (ago[m - 1] ? diedAt : bornAt)[stay] = m;
  }
}
const duration = Math.max(data.duration, times[M], 1);
const isLive = (stay, m) => bornAt[stay] <= m && m < diedAt[stay];

/** The views of each first stay, as one list with a place for each stay to begin. */
const viewsOf = (() => {
  const starts = new Int32Array(stays.rows + 1), rows = new Int32Array(views.rows);
  for (const stay of views.stay) if (stay >= 0) starts[stay + 1]++;
  for (let s = 0; s < stays.rows; s++) starts[s + 1] += starts[s];
  const next = starts.slice();
  for (let v = 0; v < views.rows; v++) if (views.stay[v] >= 0) rows[next[views.stay[v]]++] = v;
  return (stay) => {
    const first = stay - stays.moves[stay];
    return rows.subarray(starts[first], starts[first + 1]);
  };
})();

/** The scopes as lanes, outermost first: intervals of the thread that entered most of them, disjoint and in order. */
const scopeLanes = (() => {
  const counts = new Map();
  for (let i = 0; i < marks.rows; i++) if (text(marks.kind[i]) === "scope") counts.set(marks.thread[i], (counts.get(marks.thread[i]) ?? 0) + 1);
  const busiest = [...counts].sort((a, b) => b[1] - a[1])[0]?.[0];
  const lanes = [], open = [];
  for (let i = 0; i < marks.rows; i++) {
    const kind = text(marks.kind[i]);
    if (marks.thread[i] !== busiest || !kind.startsWith("scope")) continue;
    if (kind === "scope") {
      const lane = (lanes[open.length] ??= { from: [], to: [], name: [] });
      const path = text(marks.text[i]), outer = open.at(-1)?.path;
      open.push({ lane, place: lane.from.length, path });
      lane.from.push(marks.time[i]);
      lane.to.push(duration);
      // A path goes on from the scope around it; a name may have dots of its own.
      lane.name.push(outer && path.startsWith(`${outer}.`) ? path.slice(outer.length + 1) : path);
    } else if (open.length) {
      const { lane, place } = open.pop();
      lane.to[place] = marks.time[i];
    }
  }
  return lanes.slice(0, 3);
})();

const momentMarks = [];
for (let i = 0; i < marks.rows; i++) if (["step", "oom", "limit"].includes(text(marks.kind[i]))) momentMarks.push(i);

// ---- Names -------------------------------------------------------------------------------------------------------

/** A length of time or a moment, with digits down to `step`. */
function time(ns, step = ns / 1000) {
  const [unit, one] = ns >= 1e9 ? ["s", 1e9] : ns >= 1e6 ? ["ms", 1e6] : ns >= 1e3 ? ["µs", 1e3] : ["ns", 1];
  const digits = one === 1 ? 0 : Math.min(9, Math.max(0, Math.ceil(-Math.log10(step / one) - 1e-9)));
  return `${(ns / one).toFixed(digits)} ${unit}`;
}
/** A moment with digits for the window that is seen. */
const clock = (ns, span) => time(ns, Math.max(1, span / 1000));
/** A path with its end in sight. */
const tail = (path, most = 44) => path.length > most ? `…${path.slice(-most)}` : path;
const madeBy = (op, site) => site ? `${text(op)} ${text(site)}`.trim() : text(op);
function nameOfStay(stay) {
  if (stays.label[stay]) return text(stays.label[stay]);
  return text(stays.op[stay]) || T.storage(stays.id[stay]);
}
