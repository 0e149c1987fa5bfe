// Storages as bars to scale, tensors as boxes, lines to the bytes they reach.
//
// Only what is on screen is in the document: `layout` gives every storage and tensor its place, `render` makes
// elements for those in the window. Names come from programs and files: they enter the document through
// textContent and setAttribute, never as markup.

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
