// Draws the memory picture: storages as bars to scale, tensors as boxes, lines to the bytes they reach.
//
// Only what is on screen is in the document: `layout` gives every storage and tensor its place, `render` makes
// elements for those in the window. Names come from programs and files: they enter the document through
// textContent and setAttribute, never as markup.
(() => {

const picture = JSON.parse(document.getElementById("data").textContent);

// ---- Numbers -----------------------------------------------------------------------------------------------

const T = WORDS[picture.lang] ?? WORDS.en;

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/** Three digits and a binary unit: 4 B, 1.50 KiB, 256 MiB. */
function bytes(n) {
  let unit = 0;
  while (n >= 1023.5 && unit < UNITS.length - 1) { n /= 1024; unit++; }
  return `${unit === 0 || n >= 99.95 ? Math.round(n) : n.toPrecision(3)} ${UNITS[unit]}`;
}
const exactBytes = (n) => n < 1024 ? `${int(n)} B` : `${int(n)} B (${bytes(n)})`;
const list = (values) => `[${values.join(", ")}]`;
const tuple = (values) => values.length === 1 ? `(${values[0]},)` : `(${values.join(", ")})`;
/** A share, never rounded to all or nothing. */
function percent(part, whole) {
  const p = 100 * part / whole;
  return p === 100 ? "100 %" : p > 99 ? "> 99 %" : p < 0.1 ? "< 0.1 %" : `${p.toPrecision(2)} %`;
}
/** A name as it can be shown: not without end, and with the characters in sight that would break or turn the line. */
function cut(text, most = 240) {
  const code = (c) => `\\u{${c.codePointAt(0).toString(16)}}`;
  return (text.length > most ? text.slice(0, most) + "…" : text).replace(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, code);
}

// ---- The model: what the data says, with what is derived from it ------------------------------------------

const SHARED_FROM = 2;
const FOLDED_TENSORS = 8; // a storage shows this many until it is asked for more
const MANY_STORAGES = 200; // from here on like storages are grouped, and storages start folded

const storages = picture.storages.map((s, index) => {
  const sharedBytes = s.runs.reduce((sum, [, , n, reached]) => sum + (n >= SHARED_FROM ? reached : 0), 0);
  const storage = {
    ...s, index, key: `s${index}`, unreached: s.nbytes - s.reached_bytes, sharedBytes, oneBytes: s.reached_bytes - sharedBytes,
    name: s.label ?? s.tensors.find((t) => t.name)?.name ?? T.storage(s.id),
  };
  storage.search = `${s.label ?? ""} #${s.id} ${s.device} ${s.origin}`.toLowerCase();
  storage.tensors = s.tensors.map((t, i) => ({
    ...t, storage, key: `s${index}.${i}`, numel: t.shape.reduce((a, b) => a * b, 1),
    search: `${t.name ?? ""} ${t.op ?? ""} ${t.site ?? ""} ${t.dtype} ${list(t.shape)} ${t.note ?? ""}`.toLowerCase(),
  }));
  return storage;
});

/** Storages belong together when their names agree up to numbers; without a name, when one line made them. */
const groupName = (s) => s.label || s.tensors.some((t) => t.name) ? s.name.replace(/\d+/g, "*") : s.origin;

function sumUp(members) {
  const sum = { nbytes: 0, unreached: 0, sharedBytes: 0, oneBytes: 0, tensorCount: 0 };
  for (const s of members) {
    for (const key of ["nbytes", "unreached", "sharedBytes", "oneBytes"]) sum[key] += s[key];
    sum.tensorCount += s.tensors.length;
  }
  return sum;
}

const ORDERS = {
  waste: (a, b) => b.unreached - a.unreached || b.nbytes - a.nbytes || a.index - b.index,
  size: (a, b) => b.nbytes - a.nbytes || a.index - b.index,
  tensors: (a, b) => (b.tensorCount ?? b.tensors.length) - (a.tensorCount ?? a.tensors.length) || a.index - b.index,
  name: (a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }) || a.index - b.index,
  id: (a, b) => (a.id ?? a.members[0].id) - (b.id ?? b.members[0].id) || a.index - b.index,
};

// ---- Elements ----------------------------------------------------------------------------------------------

const $ = (id) => document.getElementById(id);

/** An element with a class, attributes and children; strings become text. */
function el(tag, className, attributes = {}, ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** A name: kept apart from the text around it, so that right-to-left letters stay inside. */
const nameOf = (text, most) => el("bdi", "", {}, cut(text, most));

/** A stacked bar of sums: no byte has a place in it. */
function stack({ nbytes, oneBytes, sharedBytes, unreached }, width) {
  const bar = el("div", "bar sums", { style: `width:${width}` });
  for (const [kind, n] of [["one", oneBytes], ["shared", sharedBytes], ["none", unreached]]) {
    if (n > 0) bar.append(el("i", kind, { style: `width:${100 * n / nbytes}%` }));
  }
  return bar;
}

// ---- State and layout ----------------------------------------------------------------------------------------

const view = {
  query: "", sort: "waste", scale: "log",
  open: new Map(), // key of a group or storage → unfolded, where that is not the default
  all: new Set(), // keys of storages that show every tensor
  cursor: null, hover: null, // keys
  width: 0, // of the bars' column
};
let sections = []; // what the page lists, from top to bottom: groups and storages, each with its place
let items = []; // everything the keyboard can stand on, in order: { key, section, row }
let places = new Map(); // key → index in items
let largest = 1; // bytes of the largest node
let detailed = null; // the key that the details show
const itemOf = (key) => items[places.get(key)];

// Pixels; picture.css has the same heights.
const HEAD = 54, ROW = 46, MORE = 40, GAP = 22, INDENT = 18, BAR = 24, BAR_TOP = 28, GUTTER = 24;

/** Gives a place to everything that the search lets through. */
function layout() {
  const words = view.query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  for (const storage of storages) {
    const rest = words.filter((w) => !storage.search.includes(w));
    const tensors = rest.length ? storage.tensors.filter((t) => rest.every((w) => t.search.includes(w))) : storage.tensors;
    if (tensors.length || !rest.length) found.push({ storage, tensors });
  }
  $("count").textContent = T.shown(found.length, found.reduce((n, f) => n + f.tensors.length, 0));

  // A search for little shows what it finds; one for much would only make the list long.
  const unfold = words.length > 0 && found.length <= 50;
  sections = [];
  items = [];
  let top = 0;
  const addStorage = ({ storage, tensors }, indent) => {
    const open = tensors.length > 0 && (view.open.get(storage.key) ?? (unfold || storages.length <= MANY_STORAGES));
    // Folding saves nothing where it would hide a single row.
    const foldable = tensors.length > FOLDED_TENSORS + 1;
    const shown = !open ? 0 : foldable && !view.all.has(storage.key) ? FOLDED_TENSORS : tensors.length;
    const section = { kind: "storage", key: storage.key, node: storage, tensors, open, shown, indent, top, rest: open && foldable ? tensors.length - shown : -1 };
    section.height = HEAD + shown * ROW + (section.rest >= 0 ? MORE : 0);
    items.push({ key: section.key, section, row: -1 });
    for (let row = 0; row < shown; row++) items.push({ key: tensors[row].key, section, row });
    if (section.rest >= 0) items.push({ key: `${section.key}.more`, section, row: shown });
    sections.push(section);
    top += section.height + (open ? GAP : 0);
  };

  const order = ORDERS[view.sort];
  const groups = new Map();
  for (const hit of found) {
    const name = storages.length > MANY_STORAGES ? groupName(hit.storage) : hit.storage.key;
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(hit);
  }
  const nodes = [...groups].map(([name, hits]) => {
    if (hits.length === 1) return { ...hits[0].storage, hits };
    const members = hits.map((hit) => hit.storage);
    return { ...sumUp(members), name, key: `g${name}`, hits, members, index: members[0].index };
  });
  largest = Math.max(1, ...nodes.map((n) => n.nbytes));
  for (const node of nodes.sort(order)) {
    if (!node.members) { addStorage(node.hits[0], 0); continue; }
    const open = view.open.get(node.key) ?? unfold;
    const section = { kind: "group", key: node.key, node, open, shown: 0, indent: 0, top, height: HEAD };
    sections.push(section);
    items.push({ key: section.key, section, row: -1 });
    top += HEAD;
    if (open) node.hits.sort((a, b) => order(a.storage, b.storage)).forEach((hit) => addStorage(hit, 1));
  }
  places = new Map(items.map((item, index) => [item.key, index]));
  if (!places.has(view.cursor)) view.cursor = items[0]?.key ?? null;
  detailed = null; // a group's sums follow the search
  $("fold").textContent = sections.some((s) => s.open) ? T.foldAll : T.unfoldAll;
  $("list").style.height = `${Math.max(top, 80)}px`;
  $("list").dataset.message = items.length ? "" : storages.length ? T.nothing : T.empty;
  redraw();
}

/** The length of a bar in pixels. */
function lengthOf(nbytes, indent = 0) {
  if (nbytes === 0) return 0;
  const part = view.scale === "linear" ? nbytes / largest : 0.06 + 0.94 * Math.log2(1 + nbytes) / Math.log2(1 + largest);
  return Math.max(4, part * (view.width - indent * INDENT));
}

// ---- Drawing -------------------------------------------------------------------------------------------------

const THINNEST = 2;

/** From where to where a run is drawn, in pixels: inside the bar, and never too thin to be seen. */
function place([start, end], storage, length) {
  const k = length / storage.nbytes;
  const from = Math.min(start * k, length - THINNEST);
  return [from, Math.max(from + THINNEST, end * k)];
}

/** The path of rectangles over runs; those that come closer than a pixel are drawn as one. */
function rectangles(runs, storage, length, y, height) {
  let d = "", from = -1, to = -1;
  const flush = () => { if (to > 0) d += `M${from.toFixed(2)} ${y}H${to.toFixed(2)}v${height}H${from.toFixed(2)}z`; };
  for (const run of runs) {
    const [a, b] = place(run, storage, length);
    if (to > 0 && a - to < 0.7) to = b;
    else { flush(); [from, to] = [a, b]; }
  }
  flush();
  return d;
}

/** Runs as paths, one for each fill; the less of a coarse run is reached, the fainter it is. */
function drawRuns(runs, storage, length, y, height, classOf) {
  const classes = new Map();
  for (const run of runs) {
    const fill = Math.floor(4 * run[3] / (run[1] - run[0]));
    const key = `${classOf(run)} d${Math.max(1, fill)}`;
    if (!classes.has(key)) classes.set(key, []);
    classes.get(key).push(run);
  }
  return [...classes].map(([name, some]) => svg("path", { class: name, d: rectangles(some, storage, length, y, height) }));
}

function drawHead(section) {
  const { node, kind, open, indent } = section;
  const length = lengthOf(node.nbytes, indent);
  const isGroup = kind === "group";
  const count = isGroup ? `${T.nStorages(node.members.length)} · ${T.nTensors(node.tensorCount)}` : node.tensors.length ? T.nTensors(node.tensors.length) : T.noTensor;
  const state = node.nbytes === 0 ? T.noBytes : node.unreached ? T.isUnreached(`${bytes(node.unreached)} (${percent(node.unreached, node.nbytes)})`) : T.allReached;
  let bar;
  if (isGroup) bar = stack(node, `${length}px`);
  else {
    bar = el("div", "bar", { style: `width:${length}px` },
      svg("svg", { width: length, height: BAR, "aria-hidden": "true" },
        ...drawRuns(node.runs, node, length, 0, BAR, (run) => run[2] >= SHARED_FROM ? "shared" : "one"),
        svg("path", { class: "mark" })));
    bar.addEventListener("mousemove", (event) => showTip(event, node, (event.clientX - bar.getBoundingClientRect().left) / length));
    bar.addEventListener("mouseleave", hideTip);
  }
  const folds = isGroup || section.tensors.length > 0;
  // Where its tensors stand below it, a storage need not borrow the name of the first.
  const name = !isGroup && open ? node.label ?? T.storage(node.id) : node.name;
  const head = el("div", `head ${kind}`, {
    id: `i-${places.get(section.key)}`, role: "treeitem", "aria-level": 1 + indent,
    "aria-label": `${cut(node.name)}, ${bytes(node.nbytes)}, ${count}, ${state}`, "data-key": section.key, ...(folds && { "aria-expanded": open }),
  },
    el("div", "left", {},
      el("div", "line", {}, el("span", "twist", { "aria-hidden": "true" }, folds ? (open ? "▾" : "▸") : ""), el("b", "name", {}, nameOf(name)), el("span", "size", {}, bytes(node.nbytes))),
      el("div", "sub", {}, ...(isGroup ? [count] : [`${name === T.storage(node.id) ? "" : `#${node.id} · `}${node.device} · `, nameOf(node.origin)]))),
    el("div", "right", {}, el("div", "sub", {}, el("span", node.unreached ? "warn" : "", {}, state), isGroup ? "" : ` · ${count}`), bar));
  return head;
}

function drawTensor(section, row) {
  const t = section.tensors[row], s = section.node;
  const length = lengthOf(s.nbytes, section.indent);
  const middle = ROW / 2 + 3;
  const drawing = svg("svg", { width: view.width, height: ROW, "aria-hidden": "true" });
  if (t.runs.length && s.nbytes) {
    const places = t.runs.map((run) => place(run, s, length));
    const first = places[0][0], last = places.at(-1)[1];
    drawing.append(svg("path", { class: "wire", d: `M${-GUTTER} ${middle}H${last.toFixed(2)}` }));
    // Its runs stand out upwards to the storage's bar; one that is far above has scrolled down to the window's top.
    const stem = `V${Math.max(BAR_TOP + BAR - HEAD - row * ROW, -4000)}`;
    const ends = places.length <= 12 ? places : [[first, last]];
    drawing.append(
      svg("path", { class: "band", d: ends.map(([a, b]) => `M${a.toFixed(2)} ${middle}${stem}H${b.toFixed(2)}V${middle}z`).join("") }),
      ...drawRuns(t.runs, s, length, middle - 4, 8, () => "lane"));
  }
  return el("div", "tensor", {
    id: `i-${places.get(t.key)}`, role: "treeitem", "aria-level": 2 + section.indent, "data-key": t.key, style: `top:${HEAD + row * ROW}px`,
    "aria-label": `${cut(t.name ?? T.unnamed)}, ${t.dtype} ${list(t.shape)}, ${T.stride} ${list(t.stride)}, ${T.offset} ${t.offset}, ${bytes(t.reached_bytes)} ${T.reached}`,
  },
    el("div", "box", {},
      el("div", "line", {}, el("b", t.name ? "name" : "name unnamed", {}, nameOf(t.name ?? t.op ?? T.unnamed)), el("span", "dtype", {}, t.dtype)),
      el("div", "sub", {}, `${cut(list(t.shape), 80)}  ${T.stride} ${cut(tuple(t.stride), 80)}${t.offset ? `  ${T.offset} ${int(t.offset)}` : ""}`)),
    el("div", "right", {}, drawing));
}

function drawMore(section) {
  const key = `${section.key}.more`;
  return el("div", "more", { id: `i-${places.get(key)}`, role: "treeitem", "aria-level": 2 + section.indent, "data-key": key, style: `top:${HEAD + section.shown * ROW}px` },
    section.rest ? T.more(section.rest) : T.fewer);
}

const drawn = new Map(); // key of a section → { element, rows: row → element }

function redraw() {
  for (const { element } of drawn.values()) element.remove();
  drawn.clear();
  render();
}

/** The first index of sorted `things` for which `isPast` holds. */
function firstWhere(things, isPast) {
  let low = 0, high = things.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isPast(things[middle])) high = middle; else low = middle + 1;
  }
  return low;
}

/** Makes elements for what is in the window and takes away the rest. */
function render() {
  const margin = 400;
  const from = window.scrollY - $("list").offsetTop - margin, to = from + window.innerHeight + 2 * margin;
  const seen = new Set();
  for (let i = firstWhere(sections, (s) => s.top + s.height > from); i < sections.length && sections[i].top < to; i++) {
    const section = sections[i];
    seen.add(section.key);
    if (!drawn.has(section.key)) {
      const element = el("div", `section ${section.kind}${section.open ? " open" : ""}`, { role: "none", style: `top:${section.top}px;height:${section.height}px;--indent:${section.indent * INDENT}px` }, drawHead(section));
      if (section.rest >= 0) element.append(drawMore(section));
      $("list").append(element);
      drawn.set(section.key, { element, rows: new Map() });
    }
    const { element, rows } = drawn.get(section.key);
    const firstRow = Math.max(0, Math.floor((from - section.top - HEAD) / ROW));
    const endRow = Math.min(section.shown, Math.ceil((to - section.top - HEAD) / ROW));
    for (const [row, old] of rows) if (row < firstRow || row >= endRow) { old.remove(); rows.delete(row); }
    for (let row = firstRow; row < endRow; row++) {
      if (!rows.has(row)) rows.set(row, element.appendChild(drawTensor(section, row)));
    }
  }
  for (const [key, { element }] of drawn) if (!seen.has(key)) { element.remove(); drawn.delete(key); }
  highlight();
}

/** Marks the item under the pointer, else the one under the cursor, and shows its details. */
function highlight() {
  const key = view.hover ?? view.cursor;
  for (const old of $("list").querySelectorAll(".hot, .cursor, .focus-runs")) old.classList.remove("hot", "cursor", "focus-runs");
  const find = (k) => k === null ? null : $("list").querySelector(`[data-key="${CSS.escape(k)}"]`);
  const cursor = find(view.cursor);
  cursor?.classList.add("cursor");
  if (cursor) $("list").setAttribute("aria-activedescendant", cursor.id); else $("list").removeAttribute("aria-activedescendant");
  const hot = find(key);
  hot?.classList.add("hot");
  const item = itemOf(key);
  if (hot && item.row >= 0 && item.row < item.section.shown) {
    const { node, tensors, indent } = item.section;
    const bar = hot.parentElement.querySelector(".bar");
    bar.classList.add("focus-runs");
    bar.querySelector(".mark").setAttribute("d", node.nbytes ? rectangles(tensors[item.row].runs, node, lengthOf(node.nbytes, indent), 1, BAR - 2) : "");
  }
  if (item) showDetails(item);
  else $("details").replaceChildren();
}

// ---- Details -------------------------------------------------------------------------------------------------

function facts(pairs) {
  const dl = el("dl", "facts");
  for (const [term, ...values] of pairs) {
    if (values[0] === null || values[0] === "") continue;
    const words = values.flatMap((value, i) => [i ? " · " : "", nameOf(String(value), 20000)]);
    dl.append(el("dt", "", {}, term), el("dd", "", {}, ...words));
  }
  return dl;
}

function rangesOf(title, ranges) {
  const rows = ranges.slice(0, 6).map(([start, end]) => el("li", "", {}, `${int(start)} – ${int(end)}`, el("span", "sub", {}, bytes(end - start))));
  if (ranges.length > 6) rows.push(el("li", "sub", {}, T.moreRanges(ranges.length - 6)));
  return ranges.length ? [el("h3", "", {}, title), el("ol", "ranges", {}, ...rows)] : [];
}

/** The ranges of a storage that no run covers, largest first. */
function gapsOf(s) {
  const gaps = [];
  let from = 0;
  for (const [start, end] of [...s.runs, [s.nbytes, s.nbytes]]) {
    if (start > from) gaps.push([from, start]);
    from = end;
  }
  return gaps.sort((a, b) => (b[1] - b[0]) - (a[1] - a[0]));
}

function showDetails({ key, section, row }) {
  if (detailed === key) return;
  detailed = key;
  const { node: s, tensors } = section;
  const t = tensors?.[row];
  const parts = [];
  if (t && row < section.shown) {
    const pinned = s.nbytes - t.reached_bytes, others = s.tensors.length - 1;
    parts.push(el("h2", "", {}, nameOf(t.name ?? t.op ?? T.unnamed, 2000)));
    if (pinned > 0) {
      parts.push(el("p", s.unreached > 0 ? "pins" : "pins calm", {}, el("b", "", {}, T.pins(bytes(pinned))), " ", others ? T.also(others) : T.alone,
        ...(others === 0 && t.view ? [" ", T.compact] : [])));
    }
    parts.push(facts([[T.op, t.op], [T.site, t.site], [T.dtype, t.dtype], [T.shape, list(t.shape)], [T.stride, tuple(t.stride)], [T.offset, int(t.offset)],
      [T.elements, int(t.numel)], [T.reached, exactBytes(t.reached_bytes)], [T.firstByte, t.runs.length ? int(t.runs[0][0]) : ""], [T.kind, t.view ? T.view : T.base], [T.note, t.note],
      [T.onStorage, s.label ?? T.storage(s.id), bytes(s.nbytes), s.origin]]));
    parts.push(...rangesOf(T.ranges, t.runs));
    if (t.runs.some(([a, b, , n]) => n < b - a)) parts.push(el("p", "sub", {}, T.coarse));
  } else {
    parts.push(el("h2", "", {}, nameOf(s.name, 2000)));
    if (s.unreached > 0) parts.push(el("p", s.unreached > 0 ? "pins" : "pins calm", {}, el("b", "", {}, T.dead(bytes(s.unreached)))));
    parts.push(stack(s, "100%"));
    parts.push(facts([[T.label, s.label ?? null], [T.storages, s.members ? int(s.members.length) : null], [T.tensors, int(s.tensorCount ?? s.tensors.length)], [T.size, exactBytes(s.nbytes)],
      [T.one, bytes(s.oneBytes)], [T.shared, bytes(s.sharedBytes)], [T.none, bytes(s.unreached)], [T.device, s.device ?? null], [T.origin, s.origin ?? null]]));
    if (s.runs) parts.push(...rangesOf(T.gaps, gapsOf(s)));
    if (s.exact === false) parts.push(el("p", "sub", {}, T.coarse));
  }
  $("details").replaceChildren(...parts);
  $("details").scrollTop = 0;
}

function showTip(event, s, part) {
  const at = Math.min(s.nbytes - 1, Math.max(0, Math.floor(part * s.nbytes)));
  const run = s.runs.find(([start, end]) => at >= start && at < end);
  const [start, end] = run ?? gapsOf(s).find(([a, b]) => at >= a && at < b);
  const names = run ? s.tensors.filter((t) => t.runs.some(([a, b]) => a <= at && at < b)).slice(0, 3).map((t) => cut(t.name ?? t.op ?? T.unnamed, 40)) : [];
  const tip = $("tip");
  tip.replaceChildren(el("b", "", {}, `${int(start)} – ${int(end)}`), ` ${bytes(end - start)}`, el("br"), run ? T.nTensors(run[2]) : T.none);
  if (run && run[3] < end - start) tip.append(` · ${T.coarseStretch(bytes(run[3]), bytes(end - start))}`);
  for (const name of names) tip.append(el("br"), nameOf(name));
  tip.hidden = false;
  tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.min(event.clientY + 16, window.innerHeight - tip.offsetHeight - 8)}px`;
}
const hideTip = () => { $("tip").hidden = true; };

// ---- Pointer and keyboard ------------------------------------------------------------------------------------

/** Folds or unfolds; on the last row of a long storage, shows all its tensors or few. */
function toggle(item, open = !item.section.open) {
  const { section, row } = item;
  if (row === section.shown && section.rest >= 0) {
    if (section.rest) view.all.add(section.key); else view.all.delete(section.key);
    // The cursor stays on the screen: on the first new row, or back on the storage.
    view.cursor = section.rest ? section.tensors[section.shown].key : section.key;
  } else if (row === -1) view.open.set(section.key, open);
  else return;
  layout();
  reveal();
}

/** Scrolls so that the cursor is in the window, below what sticks to its top. */
function reveal() {
  const item = itemOf(view.cursor);
  if (!item) return;
  const top = $("list").offsetTop + item.section.top + (item.row < 0 ? 0 : HEAD + item.row * ROW);
  const above = $("toolbar").offsetHeight + (item.row < 0 ? 0 : HEAD) + 8;
  const below = window.innerHeight - ROW - 16 - (getComputedStyle($("details")).position === "fixed" ? $("details").offsetHeight : 0);
  if (top < window.scrollY + above) window.scrollTo({ top: top - above });
  else if (top > window.scrollY + below) window.scrollTo({ top: top - below });
  render();
}

function moveTo(index) {
  view.cursor = items[Math.min(items.length - 1, Math.max(0, index))]?.key ?? null;
  view.hover = null;
  reveal();
}

function onListKey(event) {
  const at = (places.get(view.cursor) ?? -1);
  const item = items[at];
  if (!item || event.ctrlKey || event.metaKey || event.altKey) return;
  const page = Math.max(1, Math.floor(window.innerHeight / ROW / 1.5));
  const actions = {
    ArrowDown: () => moveTo(at + 1), ArrowUp: () => moveTo(at - 1), PageDown: () => moveTo(at + page), PageUp: () => moveTo(at - page),
    Home: () => moveTo(0), End: () => moveTo(items.length - 1), Enter: () => toggle(item), " ": () => toggle(item),
    ArrowRight: () => item.row === -1 && !item.section.open ? toggle(item, true) : moveTo(at + 1),
    ArrowLeft: () => {
      if (item.row === -1 && item.section.open) toggle(item, false);
      else if (item.row >= 0) moveTo(places.get(item.section.key));
      else moveTo(items.slice(0, at).findLastIndex((i) => i.row === -1 && i.section.indent < item.section.indent));
    },
  };
  if (!actions[event.key]) return;
  event.preventDefault();
  $("list").focus({ preventScroll: true });
  actions[event.key]();
}

const keyAt = (event) => event.target.closest("[data-key]")?.dataset.key ?? null;

function listen() {
  const tree = $("list"), search = $("search");
  tree.addEventListener("mousemove", (event) => {
    const key = keyAt(event);
    if (key !== view.hover) { view.hover = key; highlight(); }
  });
  tree.addEventListener("mouseleave", () => { view.hover = null; hideTip(); highlight(); });
  tree.addEventListener("click", (event) => {
    const item = itemOf(keyAt(event));
    if (!item) return;
    view.cursor = item.key;
    if (item.row === -1 || item.row === item.section.shown) toggle(item); else highlight();
  });
  search.addEventListener("input", () => { view.query = search.value; view.hover = null; layout(); });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { search.value = view.query = ""; layout(); }
    if (event.key === "Escape" || event.key === "Enter" || event.key === "ArrowDown") { event.preventDefault(); tree.focus({ preventScroll: true }); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && event.target !== search) { event.preventDefault(); search.focus(); search.select(); }
    else if (event.target === tree || event.target === document.body) onListKey(event);
  });
  $("sort").addEventListener("change", () => { view.sort = $("sort").value; layout(); });
  $("scale").addEventListener("change", (event) => { view.scale = event.target.value; layout(); });
  $("fold").addEventListener("click", () => {
    const open = !sections.some((s) => s.open);
    view.open.clear();
    for (const s of storages) view.open.set(s.key, open && storages.length <= MANY_STORAGES);
    for (const s of sections) if (s.kind === "group") view.open.set(s.key, open);
    layout();
  });
  const root = document.documentElement;
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const nameTheme = () => { $("theme").textContent = isDark() ? T.light : T.dark; };
  $("theme").addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; nameTheme(); });
  nameTheme();
  let waiting = false;
  window.addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; render(); });
  }, { passive: true });
  new ResizeObserver(() => {
    const width = measure();
    if (width !== view.width) { view.width = width; layout(); } else render();
  }).observe(document.body);
}

/** The width of the bars' column, which the style sheet decides. */
function measure() {
  const style = getComputedStyle($("list"));
  document.documentElement.style.setProperty("--toolbar", `${$("toolbar").offsetHeight}px`);
  return Math.max(120, $("list").clientWidth - parseFloat(style.getPropertyValue("--left")) - GUTTER);
}

// ---- The page's frame ----------------------------------------------------------------------------------------

function frame() {
  const { totals } = picture;
  $("heading").querySelector("h1").textContent = cut(picture.title);
  $("heading").querySelector("p").textContent = cut(picture.subtitle, 600);
  const sum = sumUp(storages);
  const legend = el("div", "legend");
  for (const [kind, word, n] of [["one", T.one, sum.oneBytes], ["shared", T.shared, sum.sharedBytes], ["none", T.none, sum.unreached]]) {
    legend.append(el("span", "", {}, el("i", kind), `${word} `, el("b", "", { title: exactBytes(n) }, bytes(n))));
  }
  if (storages.some((s) => !s.exact)) legend.append(el("span", "", {}, el("i", "partly"), T.partly));
  $("strip").append(stack(sum, "100%"), legend);
  for (const key of ["allocated", "reserved", "requested", "reached", "unreached", "storages", "tensors"]) {
    const value = totals[key];
    if (value === null || value === undefined) continue;
    const isCount = key === "storages" || key === "tensors";
    $("totals").append(el("div", key === "unreached" && value ? "warn" : "", isCount ? {} : { title: exactBytes(value) }, el("dt", "", {}, T[key]), el("dd", "", {}, isCount ? int(value) : bytes(value))));
  }
  $("search").placeholder = T.search;
  $("search").setAttribute("aria-label", T.search);
  $("sort-label").textContent = T.sort;
  for (const [value, word] of [["waste", T.byWaste], ["size", T.bySize], ["tensors", T.byTensors], ["name", T.byName], ["id", T.byId]]) {
    $("sort").append(el("option", "", { value }, word));
  }
  $("scale").setAttribute("aria-label", T.scale);
  $("scale").title = T.scaleHint;
  for (const scale of ["log", "linear"]) {
    const input = el("input", "", { type: "radio", name: "scale", value: scale });
    input.checked = scale === view.scale;
    $("scale").append(el("label", "", {}, input, el("span", "", {}, T[scale])));
  }
  $("list").setAttribute("aria-label", T.list);
  $("details").setAttribute("aria-label", T.details);
  $("keys").textContent = T.keys;
}

frame();
view.width = measure();
layout();
listen();
// The page opens on the tensor that explains the largest waste.
const first = sections.find((s) => s.shown > 0);
if (first && first.node.unreached > 0) { view.cursor = first.tensors[0].key; highlight(); }

})();
