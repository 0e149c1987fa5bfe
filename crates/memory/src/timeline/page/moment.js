// One moment: the allocator's blocks, the storages in them, the tensors on each.

const ROW = 16, ROW_GAP = 5, ROWS = 8;
/** The blocks as they were drawn last, for the pointer. */
let ground = null;

const timeOfMoment = () => times[view.moment];
const liveAt = (rows, time) => rows.from <= time && time < rows.to;

/** The segments of the device at a moment, by address. */
function segmentsAt(ns) {
  const found = [];
  for (let i = 0; i < segments.rows; i++) {
    // At the end of the recording everything that is still there counts.
    if (segments.device[i] === view.device && segments.from[i] <= ns && (ns < segments.to[i])) found.push(i);
  }
  return found.sort((a, b) => segments.address[a] - segments.address[b]);
}

function drawBlocks(live) {
  const canvas = $("blocks"), found = segmentsAt(timeOfMoment());
  const sizes = found.map((i) => segments.size[i]), total = sizes.reduce((a, b) => a + b, 0);
  const blocks = live.filter((s) => stays.size[s] > 0).sort((a, b) => stays.address[a] - stays.address[b]);
  const used = blocks.reduce((sum, s) => sum + stays.size[s], 0);
  const hint = found.length ? T.blocksHint(found.length, bytes(used), bytes(Math.max(0, total - used))) : T.noSegments;
  $("blocks-title").replaceChildren(T.blocks, " ", el("span", "sub", {}, hint));
  canvas.setAttribute("aria-label", `${T.blocks}: ${hint}`);
  canvas.hidden = !found.length;
  ground = null;
  if (!found.length) return;
  // All segments one after the other, broken into lines like text.
  const lines = Math.min(ROWS, Math.max(1, Math.ceil(total / largestOf(sizes))));
  canvas.style.height = `${lines * (ROW + ROW_GAP)}px`;
  const { ctx, width } = fit(canvas);
  const perLine = total / lines;
  let offset = 0;
  const starts = found.map((i) => { offset += segments.size[i]; return offset - segments.size[i]; });
  ground = { found, starts, perLine, lines, width, blocks };
  /** The parts of a range on the lines: x, y, width. */
  const parts = function* (from, to) {
    for (let line = Math.floor(from / perLine); line < lines && line * perLine < to; line++) {
      const a = Math.max(0, from / perLine - line) * width, b = Math.min(1, to / perLine - line) * width;
      yield [a, line * (ROW + ROW_GAP), b - a];
    }
  };
  const free = hatch(ctx);
  found.forEach((i, k) => {
    for (const [x, y, w] of parts(starts[k], starts[k] + segments.size[i])) {
      ctx.fillStyle = ink("--none-paper");
      ctx.fillRect(x, y, w - 1, ROW);
      ctx.fillStyle = free;
      ctx.fillRect(x, y, w - 1, ROW);
    }
  });
  const place = (s) => {
    const k = firstWhere(found, (i) => segments.address[i] > stays.address[s]) - 1;
    return k < 0 ? null : starts[k] + stays.address[s] - segments.address[found[k]];
  };
  let chosen = null;
  for (const s of blocks) {
    const from = place(s);
    if (from === null) continue;
    ctx.fillStyle = stayInk(s);
    for (const [x, y, w] of parts(from, from + stays.size[s])) ctx.fillRect(x, y, Math.max(0.75, w - (w > 4 ? 0.75 : 0)), ROW);
    if (s === view.selected) chosen = [...parts(from, from + stays.size[s])];
  }
  ctx.fillStyle = ctx.strokeStyle = ink("--focus");
  ctx.lineWidth = 2;
  for (const [x, y, w] of chosen ?? []) {
    ctx.globalAlpha = 0.45;
    ctx.fillRect(x, y, w, ROW);
    ctx.globalAlpha = 1;
    ctx.strokeRect(Math.max(1, x), y + 1, Math.max(2, w - 1), ROW - 2);
  }
  ctx.lineWidth = 1;
}

/** The style sheet's hatching as a canvas takes it. */
function hatch(ctx) {
  const tile = el("canvas", "", { width: 12, height: 12 }), t = tile.getContext("2d");
  t.strokeStyle = ink("--none");
  t.globalAlpha = 0.6;
  for (const shift of [-12, -6, 0, 6, 12]) { t.moveTo(shift - 1, 13); t.lineTo(shift + 13, -1); }
  t.stroke();
  return ctx.createPattern(tile, "repeat");
}

/** What lies under the pointer: a stay, or a free run of a segment. */
function blockUnder({ offsetX, offsetY }) {
  if (!ground) return null;
  const line = Math.min(ground.lines - 1, Math.floor(offsetY / (ROW + ROW_GAP)));
  const at = (line + Math.min(1, offsetX / ground.width)) * ground.perLine;
  const k = firstWhere(ground.starts, (start) => start > at) - 1;
  if (k < 0) return null;
  const segment = ground.found[k], address = segments.address[segment] + at - ground.starts[k];
  const next = firstWhere(ground.blocks, (s) => stays.address[s] > address), stay = ground.blocks[next - 1];
  if (stay !== undefined && address < stays.address[stay] + stays.size[stay]) return { segment, stay };
  const from = Math.max(segments.address[segment], stay === undefined ? 0 : stays.address[stay] + stays.size[stay]);
  const to = Math.min(segments.address[segment] + segments.size[segment], next < ground.blocks.length ? stays.address[ground.blocks[next]] : Infinity);
  return { segment, stay: -1, free: to - from };
}

// ---- The storages --------------------------------------------------------------------------------------------------

const CHIPS = 3;

/** From which byte of its storage to which a view reaches, and whether it reaches all between. */
function extentOf(v) {
  const [shape, stride] = data.layouts[views.layout[v]], item = itemsize(text(views.dtype[v]));
  const count = shape.reduce((a, b) => a * b, 1);
  if (!count) return null;
  const length = shape.reduce((sum, n, d) => sum + (n - 1) * stride[d], 1);
  return { from: views.offset[v] * item, to: (views.offset[v] + length) * item, dense: count >= length };
}
function itemsize(dtype) {
  const bits = Number(/\d+/.exec(dtype)?.[0] ?? 8);
  return Math.max(1, bits / 8);
}
const describe = (v) => {
  const [shape, stride] = data.layouts[views.layout[v]];
  return `${text(views.dtype[v])} ${cut(list(shape), 60)} ${T.stride} ${cut(tuple(stride), 60)}${views.offset[v] ? ` ${T.offset} ${int(views.offset[v])}` : ""}`;
};
const nameOfView = (v) => text(views.label[v]) || text(views.op[v]) || T.unnamed;

let listed = []; // the stays of the list, in its order

function drawStays(live, largest) {
  const ns = timeOfMoment();
  const total = live.reduce((sum, s) => sum + stays.bytes[s], 0);
  $("stays-title").replaceChildren(T.stays, " ", el("span", "sub", {}, live.length ? T.staysHint(live.length, bytes(total)) : T.none));
  listed = live.slice().sort((a, b) => stays.bytes[b] - stays.bytes[a] || a - b).slice(0, view.shown);
  // One that is chosen is in the list, however small.
  if (view.selected >= 0 && !listed.includes(view.selected) && live.includes(view.selected)) listed.push(view.selected);
  $("stays").replaceChildren(...listed.map((s) => rowOf(s, ns, largest)));
  const rest = live.length - listed.length;
  $("more").hidden = rest <= 0;
  $("more").textContent = T.more(rest);
  if (listed.includes(view.selected)) $("stays").setAttribute("aria-activedescendant", `stay-${view.selected}`);
  else $("stays").removeAttribute("aria-activedescendant");
}

function rowOf(s, ns, largest) {
  const alive = [...viewsOf(s)].filter((v) => views.from[v] <= ns && ns < views.to[v]);
  const chips = alive.slice(0, CHIPS).map((v) => el("div", "chip", {}, el("b", text(views.label[v]) ? "" : "unnamed", {}, nameOf(nameOfView(v), 60)), " ", el("span", "sub", {}, describe(v))));
  if (alive.length > CHIPS) chips.push(el("div", "sub", {}, T.moreTensors(alive.length - CHIPS)));
  if (!alive.length) chips.push(el("div", "sub", {}, T.noTensor));
  const width = 100 * (0.04 + 0.96 * Math.log2(1 + stays.bytes[s]) / Math.log2(1 + largest));
  const bar = el("div", "stay-bar", { style: `width:${width}%;background:${stayInk(s)}` });
  const lanes = alive.slice(0, CHIPS).map((v) => {
    const extent = stays.bytes[s] ? extentOf(v) : null;
    const place = extent ? `margin-left:${100 * extent.from / stays.bytes[s]}%;width:${Math.max(0.5, 100 * (extent.to - extent.from) / stays.bytes[s])}%` : "width:0";
    return el("div", extent && !extent.dense ? "reach sparse" : "reach", { style: place });
  });
  const block = stays.size[s] ? `${T.block} 0x${stays.address[s].toString(16)} · ${bytes(stays.size[s])}${stays.size[s] > stays.bytes[s] ? ` · ${T.rounding(bytes(stays.size[s] - stays.bytes[s]))}` : ""}` : T.notOurs;
  return el("div", s === view.selected ? "stay chosen" : "stay", { id: `stay-${s}`, role: "option", "aria-selected": s === view.selected, "data-stay": s,
    "aria-label": `${cut(nameOfStay(s))}, ${bytes(stays.bytes[s])}, ${madeBy(stays.op[s], stays.site[s])}, ${T.tensors(alive.length)}` },
    el("div", "tensors", {}, ...chips),
    el("div", "storage", {},
      el("div", "line", {}, el("b", "name", {}, nameOf(nameOfStay(s), 80)), el("span", "size", {}, bytes(stays.bytes[s])), el("span", "sub", {}, nameOf(tail(madeBy(stays.op[s], stays.site[s]))))),
      el("div", "reaches", { style: `width:${width}%` }, ...lanes), bar,
      el("div", "sub", {}, `#${stays.id[s]} · ${block}`)));
}

function drawMoment() {
  const live = [];
  let largest = 1;
  for (let s = 0; s < stays.rows; s++) {
    if (stays.device[s] !== view.device || !isLive(s, view.moment)) continue;
    live.push(s);
    if (stays.bytes[s] > largest) largest = stays.bytes[s];
  }
  drawBlocks(live);
  drawStays(live, largest);
  const now = walker().to(view.moment);
  const parts = [...now.keys()].sort((a, b) => now[b] - now[a]).slice(0, 3).filter((g) => now[g] > 0).map((g) => `${cut(stack.names[g], 60)} ${bytes(now[g])}`);
  $("now").textContent = T.nowIs(clock(timeOfMoment(), view.axis === "time" ? view.to - view.from : duration), int(view.moment), int(M), bytes(stack.live[view.moment])) + (parts.length ? T.ofWhich(parts.join(", ")) : "");
  const chart = $("chart");
  chart.setAttribute("aria-valuenow", view.moment);
  chart.setAttribute("aria-valuetext", $("now").textContent);
  drawLegend(now);
}

// ---- The legend, which is the groups' table --------------------------------------------------------------------------

/** A line without its file's folders, so that its number is in sight. */
const shortLine = (line) => line.replace(/[^ ]*[/\\]/, "");

function drawLegend(now) {
  const counts = new Uint32Array(stack.names.length);
  for (let s = 0; s < stays.rows; s++) if (stays.size[s] > 0 && stays.device[s] === view.device && isLive(s, view.moment)) counts[stack.groupOf[s]]++;
  const row = (g) => {
    const button = el("button", "group", { type: "button", "data-group": g, "aria-pressed": view.only === g, title: `${cut(stack.names[g], 400)}\n${T.only}` },
      el("i", "swatch", { style: `background:${groupInk(g)}` }), nameOf(view.by === "line" ? shortLine(stack.names[g]) : stack.names[g], 80));
    return el("tr", view.only >= 0 && view.only !== g ? "faint" : "", {}, el("td", "", {}, button), el("td", "", {}, now[g] ? bytes(now[g]) : "–"), el("td", "", {}, counts[g] ? int(counts[g]) : "–"), el("td", "", {}, bytes(stack.peaks[g])));
  };
  const order = [...stack.names.keys()].reverse(); // as they are stacked, the highest first
  $("legend").tBodies[0].replaceChildren(...order.map(row));
  const held = reserved.held[Math.max(0, firstWhere(reserved.at, (t) => t > timeOfMoment()) - 1)];
  const sum = (swatch, name, value, count, peak) => el("tr", "", {}, el("td", "", {}, el("i", `swatch ${swatch}`), name), el("td", "", {}, bytes(value)), el("td", "", {}, count ? int(count) : ""), el("td", "", {}, bytes(peak)));
  $("legend").tFoot.replaceChildren(
    sum("", T.allocated, stack.live[view.moment], counts.reduce((a, b) => a + b, 0), stack.live[peakIn(0, M)]),
    sum("dashed", T.reserved, held, 0, largestOf(reserved.held)));
}

/** The drawing as a table: what each stretch of the window held, for readers that see no canvas. */
function drawTable() {
  const rows = 24, { first, last, highest } = sample(view.from, view.to, rows), walk = walker(), span = view.to - view.from;
  const body = [];
  for (let r = 0; r < rows; r++) {
    let lowest = first[r];
    for (let m = first[r]; m <= last[r]; m++) if (stack.live[m] < stack.live[lowest]) lowest = m;
    const now = walk.to(highest[r]), group = now.indexOf(largestOf(now));
    const [from, to] = [view.from + span * r / rows, view.from + span * (r + 1) / rows];
    const stretch = view.axis === "time" ? `${clock(from, span)} – ${clock(to, span)}` : `${int(Math.floor(from))} – ${int(Math.floor(to))}`;
    body.push(el("tr", "", {}, ...[stretch, bytes(stack.live[lowest]), bytes(stack.live[highest[r]])].map((words) => el("td", "", {}, words)),
      el("td", "", {}, stack.names.length ? nameOf(`${stack.names[group]} ${bytes(now[group])}`) : "")));
  }
  $("table").querySelector("tbody").replaceChildren(...body);
}
