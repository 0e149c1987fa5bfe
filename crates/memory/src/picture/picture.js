// The page: its frame, and what the pointer and the keyboard do.

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
  listenToTheme(T);
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

/** What the graph of derivatives alone keeps, by who saved it. */
function frameGraph() {
  const { graph } = picture;
  if (!graph.length) return;
  const list = el("ul");
  for (const { op, site, storages, bytes: n } of graph.slice(0, 200)) {
    const who = cut(T.saved(op, site ?? ""), 200);
    list.append(el("li", "", { title: exactBytes(n), dir: "auto" }, el("b", "", {}, bytes(n)), ` ${T.nStorages(storages)} ${who}`));
  }
  if (graph.length > 200) list.append(el("li", "", {}, T.moreRanges(graph.length - 200)));
  const sum = graph.reduce((all, g) => all + g.bytes, 0);
  $("graph").append(el("summary", "", {}, T.graph(bytes(sum))), list);
  $("graph").hidden = false;
}

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
  frameGraph();
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
