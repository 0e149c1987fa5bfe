// The panel about one stay: what it is, when it lived, who looked at it.

const LISTED = 40, FEW = 6;

function showDetails() {
  const s = view.selected;
  if (s < 0) { $("details").replaceChildren(el("p", "sub", {}, T.choose)); return; }
  const from = stays.before[s] ? T.before : clock(stays.from[s], duration);
  const to = stays.to[s] < Infinity ? clock(stays.to[s], duration) : T.stillThere;
  const life = Math.min(stays.to[s], duration) - stays.from[s];
  const parts = [
    el("h2", "", {}, el("i", "swatch", { style: `background:${stayInk(s)}` }), nameOf(nameOfStay(s), 2000)),
    facts([
      [T.size, exactBytes(stays.bytes[s])], [T.block, stays.size[s] ? exactBytes(stays.size[s]) : T.notOurs, stays.size[s] ? `0x${stays.address[s].toString(16)}` : ""].filter((x) => x !== ""),
      [T.op, text(stays.op[s])], [T.site, text(stays.site[s])], [T.scope, text(stays.scope[s])], [T.label, text(stays.label[s])],
      [T.from, from], [T.to, to], [T.life, `${time(life)} (${percent(life, duration)})`],
      [T.written, stays.version[s] ? T.times(stays.version[s]) : null], [T.thread, stays.thread[s] ? int(stays.thread[s]) : null], [T.device, data.devices[stays.device[s]].device, T.storage(stays.id[s])],
    ]),
  ];
  if (stays.moves[s]) parts.push(el("p", "sub", {}, T.moved));
  parts.push(...livesOf(s), ...copiesOf(s), ...writesOf(s));
  $("details").replaceChildren(...parts);
  $("details").scrollTop = 0;
}

/** The tensors on the storage, each with a bar from its beginning to its end, above the storage's own. */
function livesOf(s) {
  const rows = [...viewsOf(s)].filter((v) => views.from[v] < stays.to[s] && views.to[v] > stays.from[s]);
  const begin = stays.from[s], end = Math.max(begin + 1, Math.min(duration, stays.to[s]));
  const bar = (from, to, colour) => {
    const [a, b] = [from, Math.min(to, end)].map((t) => 100 * (Math.max(t, begin) - begin) / (end - begin));
    return el("div", "life", {}, el("i", "", { style: `margin-left:${Math.min(a, 99)}%;width:${Math.max(1, b - a)}%;background:${colour}` }));
  };
  const items = rows.slice(0, LISTED).map((v) => el("li", "", {},
    el("div", "line", {}, el("b", text(views.label[v]) ? "name" : "name unnamed", {}, nameOf(nameOfView(v))), ...(views.view[v] ? [el("span", "sub", {}, T.view)] : [])),
    el("div", "sub", {}, describe(v)),
    el("div", "sub", {}, nameOf(tail(madeBy(views.op[v], views.site[v]))), ...(views.scope[v] ? [" · ", nameOf(text(views.scope[v]), 80)] : [])),
    bar(views.from[v], views.to[v], ink("--lane"))));
  if (rows.length > LISTED) items.push(el("li", "sub", {}, T.moreRows(rows.length - LISTED)));
  return [el("h3", "", {}, T.lives(rows.length)), bar(begin, end, stayInk(s)), el("ol", "lives", {}, ...items)];
}

/** The rows of a table in which a column names the stay, a few of them. */
function rowsWith(s, rows, test, words) {
  const found = [];
  for (let i = 0; i < rows; i++) if (test(i)) found.push(i);
  const items = found.slice(0, FEW).map((i) => el("li", "", {}, ...words(i)));
  if (found.length > FEW) items.push(el("li", "sub", {}, T.moreRows(found.length - FEW)));
  return items;
}
const within = (s, ns) => stays.from[s] <= ns && ns <= stays.to[s];
const firstOf = (s) => s - stays.moves[s];

function copiesOf(s) {
  const first = firstOf(s);
  const items = rowsWith(s, copies.rows, (i) => (copies.from[i] === first || copies.to[i] === first) && within(s, copies.time[i]), (i) => [
    `${(copies.to[i] === first ? T.copyIn : T.copyOut)(bytes(copies.bytes[i]), cut(text(copies.op[i]), 40))} (${cut(text(copies.reason[i]), 40)})`,
    el("div", "sub", {}, `${clock(copies.time[i], duration)} · `, nameOf(tail(text(copies.site[i])))),
  ]);
  return items.length ? [el("h3", "", {}, T.copies), el("ol", "lives", {}, ...items)] : [];
}

function writesOf(s) {
  const first = firstOf(s);
  const items = rowsWith(s, writes.rows, (i) => writes.stay[i] === first && within(s, writes.time[i]), (i) => [
    cut(text(writes.op[i]), 80), el("div", "sub", {}, `${clock(writes.time[i], duration)} · `, nameOf(tail(text(writes.site[i])))),
  ]);
  return items.length ? [el("h3", "", {}, T.writes), el("ol", "lives", {}, ...items)] : [];
}
