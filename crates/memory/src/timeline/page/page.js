// The page: its frame, and what the pointer and the keyboard do.

// ---- What changes together -----------------------------------------------------------------------------------------

/** Draws the window anew; the bands are drawn once a frame, however often they are asked for. */
let waiting = false, pointer = null;
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    drawBands();
    drawMarks(pointer);
    drawOverview();
    if ($("table").open) drawTable();
  });
}

function setWindow(from, to) {
  const end = axisEnd(), least = Math.min(end, view.axis === "time" ? 100 : 8);
  const span = Math.min(end, Math.max(least, to - from));
  view.from = Math.min(end - span, Math.max(0, from + (to - from - span) / 2));
  view.to = view.from + span;
  redraw();
}
function zoom(factor, around = axisOf(view.moment)) {
  const at = Math.min(view.to, Math.max(view.from, around));
  setWindow(at - (at - view.from) * factor, at + (view.to - at) * factor);
}
const pan = (by) => setWindow(view.from + by, view.to + by);
const whole = () => setWindow(0, axisEnd());

function setMoment(m, inSight = true) {
  view.moment = Math.min(M, Math.max(0, m));
  view.shown = 60;
  drawMoment();
  const at = axisOf(view.moment), span = view.to - view.from;
  if (inSight && (at < view.from || at > view.to)) setWindow(at - span / 2, at + span / 2);
  else { drawMarks(pointer); drawOverview(); }
}

function select(stay) {
  view.selected = stay;
  plot.place = undefined;
  drawMarks(pointer);
  drawMoment();
  showDetails();
}

/** The next stay up or down the stack at this moment. */
function selectBeside(by) {
  const order = stackAt(view.moment);
  if (!order.length) return;
  const at = order.indexOf(view.selected);
  select(order[at < 0 ? (by > 0 ? 0 : order.length - 1) : Math.min(order.length - 1, Math.max(0, at + by))]);
}

function restack(change) {
  change();
  Object.assign(reserved, reservedSteps());
  redraw();
  requestAnimationFrame(() => { drawMoment(); showDetails(); });
}

// ---- Pointer ---------------------------------------------------------------------------------------------------------

/** What lies at a place of the chart. */
function under({ offsetX, offsetY }) {
  if (offsetX < LEFT || offsetX > LEFT + plot.width) return null;
  const column = columnAt(offsetX), moment = plot.samples.highest[column];
  if (offsetY > plot.base + AXIS) return { column, moment, copies: copiedIn(column) };
  const isInside = offsetY >= plot.top && offsetY <= plot.base;
  return { column, moment, stay: isInside ? stayAt(moment, heightAt(offsetY)) : -1 };
}

function showTip(event) {
  const at = under(event), tip = $("tip");
  if (!at) { hideTip(); return; }
  const head = el("b", "", {}, clock(times[at.moment], view.axis === "time" ? view.to - view.from : duration));
  if (at.copies) tip.replaceChildren(head, el("br"), T.copiedHere(bytes(at.copies[0]), at.copies[1]));
  else {
    tip.replaceChildren(head, ` · ${bytes(stack.live[at.moment])}`);
    if (at.stay >= 0) {
      const s = at.stay, g = stack.groupOf[s];
      tip.append(el("br"), el("i", "swatch", { style: `background:${groupInk(g)}` }), nameOf(stack.names[g], 80), ` ${bytes(walker().to(at.moment)[g])}`,
        el("br"), el("b", "", {}, nameOf(nameOfStay(s), 80)), ` ${bytes(stays.size[s])}`, el("br"), nameOf(madeBy(stays.op[s], stays.site[s])));
    }
  }
  placeTip(event);
}

function listenToChart() {
  const chart = $("marks");
  let down = null;
  const x = (event) => Math.min(LEFT + plot.width, Math.max(LEFT, event.offsetX));
  chart.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    down = { x: x(event), from: view.from, to: view.to, isPan: event.shiftKey, moved: false };
    chart.setPointerCapture(event.pointerId);
  });
  chart.addEventListener("pointermove", (event) => {
    pointer = { x: x(event) };
    if (down && Math.abs(event.offsetX - down.x) > 4) down.moved = true;
    if (down?.moved) {
      hideTip();
      if (down.isPan) {
        const by = (down.x - event.offsetX) / plot.width * (down.to - down.from);
        setWindow(down.from + by, down.to + by);
      } else pointer.brush = down.x;
    } else showTip(event);
    drawMarks(pointer);
  });
  chart.addEventListener("pointerup", (event) => {
    const was = down;
    down = null;
    if (!was) return;
    pointer = { x: x(event) };
    if (!was.moved) {
      const at = under(event);
      if (at) { setMoment(at.moment); select(at.stay ?? -1); }
    } else if (!was.isPan) {
      const [a, b] = [was.x, x(event)].sort((p, q) => p - q).map(axisAt);
      setWindow(a, b);
    }
  });
  chart.addEventListener("pointercancel", () => { down = pointer = null; drawMarks(null); });
  chart.addEventListener("pointerleave", () => { pointer = null; hideTip(); drawMarks(null); });
  chart.addEventListener("wheel", (event) => {
    if (event.ctrlKey) zoom(2 ** (event.deltaY / 200), axisAt(event.offsetX));
    else if (event.deltaX || event.shiftKey) pan((event.deltaX || event.deltaY) / plot.width * (view.to - view.from));
    else return;
    event.preventDefault();
  }, { passive: false });
}

function listenToOverview() {
  const strip = $("overview");
  let down = null;
  const grip = ({ offsetX }) => {
    const a = overviewX(view.from), b = Math.max(a + 2, overviewX(view.to));
    if (Math.abs(offsetX - a) < 6) return "from";
    if (Math.abs(offsetX - b) < 6) return "to";
    return offsetX > a && offsetX < b ? "window" : "outside";
  };
  strip.addEventListener("pointerdown", (event) => {
    let held = grip(event);
    const at = (event.offsetX - LEFT) / plot.width * axisEnd();
    if (held === "outside") {
      const half = (view.to - view.from) / 2;
      setWindow(at - half, at + half);
      held = "window";
    }
    down = { held, at, from: view.from, to: view.to };
    strip.setPointerCapture(event.pointerId);
  });
  strip.addEventListener("pointermove", (event) => {
    if (!down) { strip.style.cursor = { from: "ew-resize", to: "ew-resize", window: "grab", outside: "pointer" }[grip(event)]; return; }
    const at = (event.offsetX - LEFT) / plot.width * axisEnd(), by = at - down.at;
    if (down.held === "from") setWindow(Math.min(Math.max(0, at), down.to), down.to);
    else if (down.held === "to") setWindow(down.from, Math.max(Math.min(axisEnd(), at), down.from));
    else setWindow(down.from + by, down.to + by);
  });
  for (const end of ["pointerup", "pointercancel"]) strip.addEventListener(end, () => { down = null; });
}

function listenToBlocks() {
  const canvas = $("blocks");
  canvas.addEventListener("pointermove", (event) => {
    const at = blockUnder(event);
    if (!at) { hideTip(); return; }
    const name = at.stay >= 0 ? nameOf(nameOfStay(at.stay), 80) : T.free;
    $("tip").replaceChildren(el("b", "", {}, name), ` ${bytes(at.stay >= 0 ? stays.size[at.stay] : at.free)}`, el("br"),
      T.segment(T.kinds[text(segments.kind[at.segment])] ?? text(segments.kind[at.segment]), bytes(segments.size[at.segment])));
    placeTip(event);
  });
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("click", (event) => {
    const at = blockUnder(event);
    if (at?.stay >= 0) select(at.stay);
  });
}

// ---- Keyboard --------------------------------------------------------------------------------------------------------

function onChartKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const far = Math.max(1, Math.round((momentAt(view.to) - momentAt(view.from)) / 20));
  const by = event.shiftKey ? far : 1;
  const actions = {
    ArrowLeft: () => setMoment(view.moment - by), ArrowRight: () => setMoment(view.moment + by),
    ArrowUp: () => selectBeside(1), ArrowDown: () => selectBeside(-1),
    PageUp: () => pan((view.from - view.to) * 0.8), PageDown: () => pan((view.to - view.from) * 0.8),
    Home: () => setMoment(0), End: () => setMoment(M),
    "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2),
    "[": () => setWindow(Math.min(axisOf(view.moment), view.to), view.to), "]": () => setWindow(view.from, Math.max(view.from, axisOf(view.moment))),
    p: () => setMoment(peakIn(0, M)), a: whole, Escape: () => select(-1),
  };
  const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

function onStaysKey(event) {
  const at = listed.indexOf(view.selected);
  const to = { ArrowDown: at + 1, ArrowUp: Math.max(0, at - 1), Home: 0, End: listed.length - 1 }[event.key];
  if (to === undefined || !listed.length || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  select(listed[Math.min(listed.length - 1, to)]);
  $(`stay-${view.selected}`)?.scrollIntoView({ block: "nearest" });
}

function listen() {
  listenToChart();
  listenToOverview();
  listenToBlocks();
  $("chart").addEventListener("keydown", onChartKey);
  $("stays").addEventListener("keydown", onStaysKey);
  $("stays").addEventListener("click", (event) => {
    const stay = event.target.closest("[data-stay]")?.dataset.stay;
    if (stay !== undefined) select(Number(stay));
  });
  $("more").addEventListener("click", () => { view.shown += 240; drawMoment(); });
  $("legend").addEventListener("click", (event) => {
    const group = event.target.closest("[data-group]")?.dataset.group;
    if (group === undefined) return;
    view.only = view.only === Number(group) ? -1 : Number(group);
    restack(recount);
    requestAnimationFrame(() => $("legend").querySelector(`[data-group="${group}"]`)?.focus());
  });
  $("by").addEventListener("change", (event) => { view.by = event.target.value; restack(regroup); });
  $("axis").addEventListener("change", (event) => {
    // The same moments stay in the window.
    const [from, to] = [momentAt(view.from), momentAt(view.to)], isWhole = view.from === 0 && view.to === axisEnd();
    view.axis = event.target.value;
    if (isWhole) whole(); else setWindow(axisOf(from), axisOf(to));
  });
  $("device").addEventListener("change", () => { view.device = Number($("device").value); view.selected = -1; restack(regroup); setMoment(peakIn(0, M)); });
  $("zoom-in").addEventListener("click", () => zoom(0.5));
  $("zoom-out").addEventListener("click", () => zoom(2));
  $("whole").addEventListener("click", whole);
  $("peak").addEventListener("click", () => setMoment(peakIn(0, M)));
  $("table").addEventListener("toggle", () => { if ($("table").open) drawTable(); });
  let wide = $("drawing").clientWidth;
  new ResizeObserver(() => {
    if (wide === $("drawing").clientWidth) return;
    wide = $("drawing").clientWidth;
    redraw();
    requestAnimationFrame(drawMoment);
  }).observe($("drawing"));
  // The first time at once: what is below the bands is drawn by it.
  listenToTheme(T, () => { inks.clear(); restack(() => {}); });
}

// ---- The page's frame ------------------------------------------------------------------------------------------------

function choice(id, label, chosen, options) {
  $(`${id}-label`).textContent = label;
  $(id).setAttribute("aria-label", label);
  for (const [value, words] of options) {
    const input = el("input", "", { type: "radio", name: id, value });
    input.checked = value === chosen;
    $(id).append(el("label", "", {}, input, el("span", "", {}, words)));
  }
}

function frame() {
  $("heading").querySelector("h1").textContent = cut(data.title);
  $("heading").querySelector("p").textContent = data.lost ? T.lost(data.lost) : "";
  $("heading").querySelector("p").className = "warn";
  const device = data.devices[view.device], copied = copiedUpTo[copies.rows];
  const figures = [[T.recorded, time(data.duration, data.duration / 100)], [T.events, int(data.events)], [T.peak, bytes(device?.peak.allocated ?? 0)], [T.peakReserved, bytes(device?.peak_reserved.reserved ?? 0)],
    [T.atEnd, bytes(device?.end.allocated ?? 0)], [T.allocations, int(stays.rows)], [T.views, int(views.rows)], ...(copies.rows ? [[T.copied, bytes(copied)]] : [])];
  for (const [term, value] of figures) $("totals").append(el("div", "", {}, el("dt", "", {}, term), el("dd", "", {}, value)));
  choice("by", T.by, view.by, [["label", T.byLabel], ["scope", T.byScope], ["line", T.byLine]]);
  choice("axis", T.axis, view.axis, [["time", T.time], ["change", T.change]]);
  $("device").setAttribute("aria-label", T.device);
  // A device on which nothing ever was is left out.
  data.devices.forEach(({ device }, i) => { if (stays.device.includes(i)) $("device").append(el("option", "", { value: i }, device)); });
  $("device").hidden = $("device").options.length < 2;
  $("device").value = view.device;
  for (const [id, words] of [["zoom-in", T.zoomIn], ["zoom-out", T.zoomOut]]) { $(id).setAttribute("aria-label", words); $(id).title = words; }
  $("whole").textContent = T.whole;
  $("peak").textContent = T.toPeak;
  $("legend").tHead.append(el("tr", "", {}, ...[T.group, T.now, T.count, T.groupPeak].map((words) => el("th", "", { scope: "col" }, words))));
  $("table").querySelector("summary").textContent = T.table;
  $("table").querySelector("thead").append(el("tr", "", {}, ...[T.stretch, T.lowest, T.highest, T.largest].map((words) => el("th", "", { scope: "col" }, words))));
  for (const [id, words] of [["chart", T.chart], ["stays", T.stays]]) $(id).setAttribute("aria-label", words);
  $("chart").setAttribute("aria-valuemin", 0);
  $("chart").setAttribute("aria-valuemax", M);
  $("keys").textContent = stays.rows ? T.keys : T.empty;
}

// The device that allocated most is shown first, and labels where anything has one.
view.device = data.devices.reduce((best, d, i) => d.peak.allocated > data.devices[best].peak.allocated ? i : best, 0);
view.by = stays.label.some(Boolean) ? "label" : stays.scope.some(Boolean) ? "scope" : "line";
frame();
regroup();
[view.from, view.to] = [0, axisEnd()];
view.moment = peakIn(0, M);
drawBands();
listen();
