// What is allocated at each moment, in total and by group, so that any window can be drawn from few of its moments.

const GROUPS = 12; // bands of the stack; the last one takes all smaller groups together
const CHUNK = 256; // moments between two states that are kept

const view = {
  by: "label", axis: "time", device: 0, only: -1, // what is stacked
  from: 0, to: 0, // the window, in units of the axis
  moment: 0, selected: -1, shown: 60,
};
/** What the window and the stack are made of; `regroup` and `recount` fill it. */
const stack = {
  names: [], peaks: [], // of each group
  groupOf: new Uint8Array(stays.rows),
  size: new Float64Array(stays.rows), // of each stay as far as it is stacked
  live: new Float64Array(M + 1), // the total after each change
  chunkPeak: new Int32Array(Math.ceil((M + 1) / CHUNK)), // the moment of the highest total in each chunk
  states: new Float64Array(0), // the groups' totals at each chunk's first moment
};

/** The key of each stay's group, and the name of each key. */
function keysOf(by) {
  const keys = new Int32Array(stays.rows), names = [], known = new Map();
  // One string may be the label of thousands: it is named once.
  const named = (id, name) => {
    const key = known.get(id);
    if (key !== undefined) return key;
    const text = name(), byText = known.get(text) ?? names.push(text) - 1;
    known.set(text, byText);
    known.set(id, byText);
    return byText;
  };
  const wide = data.strings.length;
  const distinct = by === "line" ? 0 : new Set(stays[by]).size;
  // layers.0.weight, layers.1.weight, … are one group where there are many labels.
  const fold = (name) => distinct > GROUPS ? name.replace(/\d+/g, "*") : name;
  for (let s = 0; s < stays.rows; s++) {
    keys[s] = by === "line"
      ? named(stays.site[s] * wide + stays.op[s], () => madeBy(stays.op[s], stays.site[s]) || T.noLine)
      : named(stays[by][s], () => fold(text(stays[by][s])) || (by === "label" ? T.noLabel : T.noScope));
  }
  return { keys, names };
}

/** Sorts the stays into groups: those with the highest peaks, largest first, and the rest. */
function regroup() {
  const { keys, names } = keysOf(view.by);
  const now = new Float64Array(names.length), peak = new Float64Array(names.length);
  const add = (s) => {
    if (stays.device[s] !== view.device) return;
    const key = keys[s];
    now[key] += stays.size[s];
    if (now[key] > peak[key]) peak[key] = now[key];
  };
  for (let s = 0; s < stays.rows && bornAt[s] === 0; s++) add(s);
  for (let m = 1; m <= M; m++) {
    if (changes[m] > 0) add(changes[m] - 1);
    else if (stays.device[-changes[m] - 1] === view.device) now[keys[-changes[m] - 1]] -= stays.size[-changes[m] - 1];
  }
  const order = [...names.keys()].filter((key) => peak[key] > 0).sort((a, b) => peak[b] - peak[a] || a - b);
  const own = order.length > GROUPS ? GROUPS - 1 : order.length, rest = order.slice(own);
  const rank = new Uint8Array(names.length).fill(Math.min(own, GROUPS - 1));
  order.slice(0, own).forEach((key, group) => { rank[key] = group; });
  for (let s = 0; s < stays.rows; s++) stack.groupOf[s] = rank[keys[s]];
  stack.names = order.slice(0, own).map((key) => names[key]);
  if (rest.length) stack.names.push(T.others(rest.length));
  view.only = -1;
  recount();
}

/** Counts anew what the device, and the group that is shown alone, have at each moment. */
function recount() {
  const { size, live, groupOf, chunkPeak } = stack, K = Math.max(1, stack.names.length);
  const now = new Float64Array(K);
  let total = 0;
  stack.states = new Float64Array(chunkPeak.length * K);
  for (let s = 0; s < stays.rows; s++) {
    size[s] = stays.device[s] === view.device && (view.only < 0 || groupOf[s] === view.only) ? stays.size[s] : 0;
    if (bornAt[s] === 0) { now[groupOf[s]] += size[s]; total += size[s]; }
  }
  const peaks = Array.from(now);
  for (let m = 0; m <= M; m++) {
    const change = changes[m];
    if (change > 0) {
      const group = groupOf[change - 1];
      now[group] += size[change - 1];
      total += size[change - 1];
      if (now[group] > peaks[group]) peaks[group] = now[group];
    } else if (change < 0) {
      now[groupOf[-change - 1]] -= size[-change - 1];
      total -= size[-change - 1];
    }
    live[m] = total;
    const chunk = (m / CHUNK) | 0;
    if (m % CHUNK === 0) { chunkPeak[chunk] = m; stack.states.set(now, chunk * K); } else if (total > live[chunkPeak[chunk]]) chunkPeak[chunk] = m;
  }
  if (view.only < 0) stack.peaks = peaks;
}

/** The first moment of the highest total from moment `a` to `b`, both included. */
function peakIn(a, b) {
  const { live, chunkPeak } = stack;
  let best = a;
  for (let m = a + 1; m <= b; m++) {
    if (m % CHUNK === 0 && m + CHUNK - 1 <= b) {
      const peak = chunkPeak[m / CHUNK];
      if (live[peak] > live[best]) best = peak;
      m += CHUNK - 1;
    } else if (live[m] > live[best]) best = m;
  }
  return best;
}

/** Walks moments forwards, with the groups' totals in `now`. */
function walker() {
  const K = Math.max(1, stack.names.length), now = new Float64Array(K);
  let at = -1;
  return {
    now,
    to(m) {
      const chunk = (m / CHUNK) | 0;
      if (at < 0 || m < at || m - at > CHUNK) {
        at = chunk * CHUNK;
        now.set(stack.states.subarray(chunk * K, (chunk + 1) * K));
      }
      while (at < m) {
        const change = changes[++at];
        if (change > 0) now[stack.groupOf[change - 1]] += stack.size[change - 1];
        else if (change < 0) now[stack.groupOf[-change - 1]] -= stack.size[-change - 1];
      }
      return now;
    },
  };
}

// ---- The axis ----------------------------------------------------------------------------------------------------

const axisEnd = () => view.axis === "time" ? duration : M + 1;
const axisOf = (m) => view.axis === "time" ? times[m] : m;
/** The last moment whose change was no later than `ns`. */
const momentAtTime = (ns) => Math.max(0, firstWhere(times, (t) => t > ns) - 1);
/** The moment that holds at a place of the axis. */
const momentAt = (x) => view.axis === "time" ? momentAtTime(x) : Math.min(M, Math.max(0, Math.floor(x)));
const axisOfTime = (ns) => view.axis === "time" ? ns : momentAtTime(ns) + 1;
/** The time from which on things stand at a place of the axis or after it. */
const timeOfAxis = (x) => view.axis === "time" ? x : times[Math.min(M, Math.max(0, Math.ceil(x) - 1))];

/** For each of `columns` parts of a stretch, the moment of its highest total, and the first and last of its moments. */
function sample(from, to, columns) {
  const first = new Int32Array(columns), last = new Int32Array(columns), highest = new Int32Array(columns);
  let m = momentAt(from);
  for (let c = 0; c < columns; c++) {
    first[c] = m;
    const end = from + (to - from) * (c + 1) / columns;
    // Mostly the next moment lies beyond, or few do not.
    let ahead = 1;
    while (m + ahead <= M && axisOf(m + ahead) < end) ahead *= 2;
    let low = m + (ahead >> 1), high = Math.min(M, m + ahead);
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (axisOf(middle) < end) low = middle; else high = middle - 1;
    }
    m = low;
    last[c] = m;
    highest[c] = peakIn(first[c], m);
  }
  return { first, last, highest };
}

/** The stays at a moment that are stacked, in the order of the stack: by group, then by age. */
function stackAt(m) {
  const groups = stack.names.map(() => []);
  for (let s = 0; s < stays.rows; s++) if (stack.size[s] > 0 && isLive(s, m)) groups[stack.groupOf[s]].push(s);
  return groups.flat();
}

/** The stay at a height of the stack, or -1. */
function stayAt(m, height) {
  const now = walker().to(m);
  let group = 0;
  while (group < now.length && height >= now[group]) height -= now[group++];
  if (group === now.length || height < 0) return -1;
  for (let s = 0; s < stays.rows; s++) {
    if (stack.groupOf[s] !== group || !isLive(s, m)) continue;
    height -= stack.size[s];
    if (height < 0) return s;
  }
  return -1;
}

/** What the allocator holds from the system: places on the time axis and the bytes from each on. */
function reservedSteps() {
  const steps = [];
  for (let i = 0; i < segments.rows; i++) {
    if (segments.device[i] !== view.device) continue;
    steps.push([segments.from[i], segments.size[i]]);
    if (segments.to[i] < Infinity) steps.push([segments.to[i], -segments.size[i]]);
  }
  // What goes and what comes at one time is one change.
  steps.sort((a, b) => a[0] - b[0]);
  const at = [0], held = [0];
  for (const [time, change] of steps) {
    if (at[at.length - 1] !== time) { at.push(time); held.push(held[held.length - 1]); }
    held[held.length - 1] += change;
  }
  return { at, held };
}
