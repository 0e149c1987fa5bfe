// The drawing over time: bands of groups, single allocations where there is room, and below it the whole as a strip.

const LEFT = 70, RIGHT = 10, PLOT = 320, LANE = 18, AXIS = 24, COPIES = 26, LABELLED = 46;
/** Steps of the single stays' sweep that a drawing may take. */
const SWEEP = 20e6;

// ---- Canvas --------------------------------------------------------------------------------------------------------

/** A canvas made to fit its place, with units of CSS pixels. */
function fit(canvas) {
  const width = canvas.clientWidth, height = canvas.clientHeight, scale = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  const ctx = canvas.getContext("2d");
  ctx.setTransform(scale, 0, 0, scale, 0, 0);
  ctx.clearRect(0, 0, width, height);
  ctx.font = `11px ${getComputedStyle(document.body).fontFamily}`;
  return { ctx, width, height, scale };
}

const inks = new Map();
/** A colour of the style sheet as a canvas takes it. */
function ink(name) {
  if (!inks.has(name)) {
    const probe = document.body.appendChild(el("i", "", { style: `color:var(${name})` }));
    inks.set(name, getComputedStyle(probe).color);
    probe.remove();
  }
  return inks.get(name);
}
const groupInk = (group) => ink(group === GROUPS - 1 ? "--rest" : `--g${group}`);
/** A stay's colour; what is not the allocator's is in no group. */
const stayInk = (stay) => stays.size[stay] ? groupInk(stack.groupOf[stay]) : ink("--lane");

/** The outline of columns from a base line up to `y`, as steps. */
function steps(path, columns, x, y, base) {
  path.moveTo(x(0), base);
  for (let c = 0; c < columns; c++) {
    path.lineTo(x(c), y(c));
    if (c + 1 === columns || y(c + 1) !== y(c)) path.lineTo(x(c + 1), y(c));
  }
  path.lineTo(x(columns), base);
}

const byteStep = (span) => 2 ** Math.ceil(Math.log2(Math.max(1, span / 5)));
function timeStep(span, most) {
  const power = 10 ** Math.floor(Math.log10(span / most));
  return Math.max(1, [1, 2, 5, 10].find((k) => k * power >= span / most) * power);
}

// ---- The plot -----------------------------------------------------------------------------------------------------

/** What was drawn last: geometry, samples and heights, for the pointer and for what is drawn above it. */
let plot = null;
const columnAt = (x) => Math.min(plot.columns - 1, Math.max(0, Math.floor((x - LEFT) * plot.scale)));
const axisAt = (x) => view.from + (view.to - view.from) * (x - LEFT) / plot.width;
const xOf = (axis) => LEFT + plot.width * (axis - view.from) / (view.to - view.from);
const heightAt = (y) => (plot.base - y) / plot.perByte;

function layoutPlot() {
  const lanes = scopeLanes.length * LANE + (momentMarks.length ? LANE : 0);
  $("chart").style.height = `${lanes + 8 + PLOT + AXIS + (copies.rows ? COPIES : 0)}px`;
  return lanes + 8;
}

function drawBands() {
  const top = layoutPlot();
  const { ctx, width: whole, scale } = fit($("bands"));
  const width = Math.max(10, whole - LEFT - RIGHT), columns = Math.floor(width * scale);
  const samples = sample(view.from, view.to, columns);
  const K = stack.names.length, tops = new Float64Array((K + 1) * columns), walk = walker();
  let most = 1;
  for (let c = 0; c < columns; c++) {
    const now = walk.to(samples.highest[c]);
    let sum = 0;
    for (let g = 0; g < K; g++) { sum += now[g]; tops[(g + 1) * columns + c] = sum; }
    if (sum > most) most = sum;
  }
  const held = heldIn(samples, columns);
  const limit = largestOf(held) <= 1.6 * most ? Math.max(most, largestOf(held)) : most;
  const perByte = (PLOT - 14) / limit, base = top + PLOT;
  plot = { width, columns, scale, top, base, perByte, samples, tops, K };
  const x = (c) => LEFT + c / scale, y = (bytes) => base - bytes * perByte;

  drawByteAxis(ctx, limit, whole, y);
  // From the highest band down, each over the whole height below it: no seam shows between two of them.
  for (let g = K - 1; g >= 0; g--) {
    ctx.beginPath();
    steps(ctx, columns, x, (c) => y(tops[(g + 1) * columns + c]), base);
    ctx.fillStyle = groupInk(g);
    ctx.fill();
  }
  drawSingles(ctx, x, y);
  ctx.beginPath();
  for (let c = 0; c < columns; c++) { ctx.lineTo(x(c), Math.max(top, y(held[c]))); ctx.lineTo(x(c + 1), Math.max(top, y(held[c]))); }
  ctx.strokeStyle = ink("--soft");
  ctx.setLineDash([4, 3]);
  ctx.stroke();
  ctx.setLineDash([]);
  drawTimeAxis(ctx, base);
  drawLanes(ctx);
  if (copies.rows) drawCopies(ctx, base + AXIS);
}

const reserved = { at: [0], held: [0] };
/** The most that the allocator held from the system in each column. */
function heldIn({ first, last }, columns) {
  const held = new Float64Array(columns), { at } = reserved;
  for (let c = 0; c < columns; c++) {
    const from = view.axis === "time" ? view.from + (view.to - view.from) * c / columns : times[first[c]];
    const to = view.axis === "time" ? view.from + (view.to - view.from) * (c + 1) / columns : times[last[c]];
    let i = Math.max(0, firstWhere(at, (t) => t > from) - 1);
    held[c] = reserved.held[i];
    while (i + 1 < at.length && at[i + 1] < to) held[c] = Math.max(held[c], reserved.held[++i]);
  }
  return held;
}

function drawByteAxis(ctx, limit, whole, y) {
  const step = byteStep(limit);
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  for (let value = 0; value <= limit; value += step) {
    const at = Math.round(y(value)) + 0.5;
    ctx.strokeStyle = ink("--rule");
    ctx.beginPath();
    ctx.moveTo(LEFT, at);
    ctx.lineTo(whole - RIGHT, at);
    ctx.stroke();
    ctx.fillStyle = ink("--soft");
    ctx.fillText(value ? bytes(value) : "0", LEFT - 8, at);
  }
}

function drawTimeAxis(ctx, base) {
  const span = view.to - view.from, step = timeStep(span, Math.max(2, plot.width / 110));
  ctx.textBaseline = "top";
  ctx.fillStyle = ctx.strokeStyle = ink("--soft");
  for (let value = Math.ceil(view.from / step) * step; value <= view.to; value += step) {
    const at = xOf(value);
    ctx.textAlign = at > LEFT + plot.width - 30 ? "right" : at < LEFT + 20 ? "left" : "center";
    ctx.fillRect(at, base, 1, 4);
    ctx.fillText(value === 0 ? "0" : view.axis === "time" ? time(value, step) : int(value), at, base + 8);
  }
}

/** The edges between single stays, where a band is high enough to tell them apart. */
function drawSingles(ctx, x, y) {
  const { samples: { highest }, columns, perByte, scale } = plot;
  const begin = highest[0], end = highest[columns - 1];
  const groups = stack.names.length, next = new Int32Array(stays.rows).fill(-1), before = new Int32Array(stays.rows).fill(-1);
  const heads = new Int32Array(groups).fill(-1), tails = new Int32Array(groups).fill(-1);
  let alive = 0;
  const add = (s) => {
    const g = stack.groupOf[s];
    if (!stack.size[s]) return;
    before[s] = tails[g];
    if (tails[g] < 0) heads[g] = s; else next[tails[g]] = s;
    tails[g] = s;
    alive++;
  };
  const remove = (s) => {
    const g = stack.groupOf[s];
    if (!stack.size[s]) return;
    if (before[s] < 0) heads[g] = next[s]; else next[before[s]] = next[s];
    if (next[s] < 0) tails[g] = before[s]; else before[next[s]] = before[s];
    next[s] = before[s] = -1;
    alive--;
  };
  for (let s = 0; s < stays.rows; s++) if (isLive(s, begin)) add(s);
  // The edge above a stay runs on while it keeps its height.
  const edgeY = new Float32Array(stays.rows).fill(-1), edgeFrom = new Int32Array(stays.rows);
  const path = new Path2D();
  let work = 0, m = begin;
  const flush = (s, c) => {
    // Shorter ones are grain, not edges.
    if (edgeY[s] >= 0 && c - edgeFrom[s] >= 3 * scale) { path.moveTo(x(edgeFrom[s]), edgeY[s]); path.lineTo(x(c), edgeY[s]); }
    edgeY[s] = -1;
  };
  for (let c = 0; c < columns; c++) {
    for (; m < highest[c]; m++) {
      const change = changes[m + 1];
      if (change > 0) add(change - 1);
      else if (change < 0) { flush(-change - 1, c); remove(-change - 1); }
    }
    work += alive;
    if (work > SWEEP) return;
    let sum = 0;
    for (let g = 0; g < groups; g++) {
      for (let s = heads[g]; s >= 0; s = next[s]) {
        sum += stack.size[s];
        const high = stack.size[s] * perByte >= 3 && next[s] >= 0 ? y(sum) : -1;
        if (Math.abs(high - edgeY[s]) > 0.01) {
          flush(s, c);
          edgeY[s] = high;
          edgeFrom[s] = c;
        }
      }
    }
  }
  for (let g = 0; g < groups; g++) for (let s = heads[g]; s >= 0; s = next[s]) flush(s, columns);
  ctx.strokeStyle = ink("--edge");
  ctx.lineWidth = 1 / Math.min(2, scale);
  ctx.stroke(path);
  ctx.lineWidth = 1;
}

// ---- Lanes ---------------------------------------------------------------------------------------------------------

function drawLanes(ctx) {
  ctx.textBaseline = "middle";
  const clip = (words, width) => {
    if (width < LABELLED) return "";
    while (words.length > 2 && ctx.measureText(words).width > width - 10) words = words.slice(0, words.length > 12 ? -4 : -1);
    return words;
  };
  const right = LEFT + plot.width;
  scopeLanes.forEach((lane, depth) => {
    // After one that is narrower than a pixel, the next to draw is the first that goes beyond it.
    const firstBeyond = (x) => { const ns = timeOfAxis(axisAt(x)); return firstWhere(lane.to, (to) => to > ns); };
    for (let i = firstBeyond(LEFT), drawn = LEFT; i < lane.from.length && drawn < right;) {
      const a = Math.max(drawn, xOf(axisOfTime(lane.from[i]))), b = Math.min(right, xOf(axisOfTime(lane.to[i])));
      if (a >= right) break;
      ctx.fillStyle = ink(i % 2 ? "--lane-a" : "--lane-b");
      ctx.fillRect(a, depth * LANE + 1, Math.max(1, b - a - 0.5), LANE - 2);
      const words = b - a < LABELLED ? "" : clip(cut(lane.name[i], 80), b - a);
      ctx.fillStyle = ink("--ink");
      ctx.textAlign = "left";
      if (words) ctx.fillText(words, a + 5, depth * LANE + LANE / 2);
      i = b - a < 1 ? Math.max(i + 1, firstBeyond(a + 1)) : i + 1;
      drawn = Math.max(b, a + 1);
    }
  });
  drawMoments(ctx, scopeLanes.length * LANE);
}

/** Steps, limits and failures: strokes, and words where there is room, those of failures first. */
function drawMoments(ctx, y) {
  const right = LEFT + plot.width, seen = [];
  let drawn = -1;
  for (let k = firstWhere(momentMarks, (i) => axisOfTime(marks.time[i]) >= view.from); k < momentMarks.length; k++) {
    const i = momentMarks[k], x = xOf(axisOfTime(marks.time[i])), kind = text(marks.kind[i]);
    if (x > right) break;
    // Steps that stand closer than pixels are one stroke; a failure is always seen.
    if (kind === "step" && x - drawn < 1) continue;
    drawn = x;
    seen.push({ i, x, kind });
  }
  const taken = [], fits = (from, to) => from >= LEFT && to <= right && taken.every(([a, b]) => to < a || from > b);
  const isFailure = (mark) => mark.kind === "oom";
  for (const mark of [...seen.filter(isFailure), ...seen.filter((mark) => !isFailure(mark))]) {
    const { i, x, kind } = mark;
    ctx.fillStyle = ink(kind === "oom" ? "--warn" : "--soft");
    let isTold = false;
    // Past a few dozen words there is no room for more.
    if (taken.length < 60) {
      const words = wordsOfMark(i), width = ctx.measureText(words).width;
      for (const [from, align] of [[x + 5, "left"], [x - 4 - width, "right"]]) {
        if (isTold || !fits(from - 4, from + width + 4)) continue;
        ctx.textAlign = align;
        ctx.fillText(words, align === "left" ? from : x - 4, y + LANE / 2);
        taken.push([from - 4, from + width + 4]);
        isTold = true;
      }
    }
    ctx.globalAlpha = kind === "oom" ? 1 : 0.55;
    const high = kind !== "step" ? plot.base - y : isTold ? 8 : 3;
    ctx.fillRect(x, kind === "step" ? y + LANE - high : y, kind === "oom" ? 2 : 1, high);
    ctx.globalAlpha = 1;
  }
}

function wordsOfMark(i) {
  const value = marks.value[i];
  switch (text(marks.kind[i])) {
    case "step": return T.step(value);
    case "oom": return T.oom(bytes(value));
    default: return Number.isNaN(value) ? T.noLimit : T.limit(bytes(value));
  }
}

const copiedUpTo = (() => {
  const sums = new Float64Array(copies.rows + 1);
  for (let i = 0; i < copies.rows; i++) sums[i + 1] = sums[i] + copies.bytes[i];
  return sums;
})();
/** The copies of a column: bytes and number. */
function copiedIn(c) {
  const { columns } = plot, part = (view.to - view.from) / columns;
  const ends = [c, c + 1].map((end) => view.from + end * part).map(timeOfAxis);
  const [from, to] = ends.map((end) => firstWhere(copies.time, (t) => t >= end));
  return [copiedUpTo[to] - copiedUpTo[from], to - from];
}

function drawCopies(ctx, y) {
  const amounts = Array.from({ length: plot.columns }, (_, c) => copiedIn(c)[0]), most = largestOf(amounts) || 1;
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  ctx.fillStyle = ink("--soft");
  ctx.fillText(T.copies, LEFT - 8, y + COPIES / 2 + 2);
  ctx.fillStyle = ink("--none");
  amounts.forEach((amount, c) => {
    const height = amount ? Math.max(2, (COPIES - 4) * Math.sqrt(amount / most)) : 0;
    ctx.fillRect(LEFT + c / plot.scale, y + COPIES - height, 1 / plot.scale, height);
  });
}

// ---- Above the bands -----------------------------------------------------------------------------------------------

/** The selected stay's place in the stack, column by column. */
function placeOf(stay) {
  const { samples: { highest }, columns, tops } = plot, group = stack.groupOf[stay];
  const low = new Float64Array(columns).fill(-1);
  if (!stack.size[stay]) return low;
  let below = 0, m = highest[0];
  for (let s = 0; s < stay; s++) if (stack.groupOf[s] === group && isLive(s, m)) below += stack.size[s];
  for (let c = 0; c < columns; c++) {
    for (; m < highest[c]; m++) {
      const change = changes[m + 1], s = Math.abs(change) - 1;
      if (s >= 0 && s < stay && stack.groupOf[s] === group) below += change > 0 ? stack.size[s] : -stack.size[s];
    }
    if (isLive(stay, m)) low[c] = tops[group * columns + c] + below;
  }
  return low;
}

function drawMarks(pointer) {
  const { ctx } = fit($("marks"));
  const { columns, scale, base, perByte, top } = plot;
  if (view.selected >= 0) {
    plot.place ??= placeOf(view.selected);
    const low = plot.place, size = stack.size[view.selected] * perByte, thick = Math.max(1.5, size);
    ctx.fillStyle = ink("--focus");
    for (let c = 0; c < columns; c++) {
      if (low[c] < 0) continue;
      const y = base - low[c] * perByte, far = Math.min(c + 1, columns);
      ctx.globalAlpha = 0.55;
      ctx.fillRect(LEFT + c / scale, y - thick, 1 / scale, thick);
      ctx.globalAlpha = 1;
      ctx.fillRect(LEFT + c / scale, y - thick - 1, 1 / scale, 1.5);
      ctx.fillRect(LEFT + c / scale, y - 0.5, 1 / scale, 1.5);
      const ends = c === 0 || low[c - 1] < 0 || far === columns || low[far] < 0;
      if (ends) ctx.fillRect(LEFT + c / scale, y - thick, 1.5, thick);
    }
  }
  const line = (x, colour) => { ctx.fillStyle = colour; ctx.fillRect(Math.round(x), top - 4, 1, base - top + 4); };
  const at = xOf(axisOf(view.moment));
  if (at >= LEFT - 1 && at <= LEFT + plot.width + 1) {
    line(at, ink("--ink"));
    ctx.beginPath();
    ctx.moveTo(at - 4.5, top - 6);
    ctx.lineTo(at + 5.5, top - 6);
    ctx.lineTo(at + 0.5, top + 1);
    ctx.fill();
  }
  if (!pointer) return;
  if (pointer.brush !== undefined) {
    const [a, b] = [pointer.brush, pointer.x].sort((p, q) => p - q);
    ctx.fillStyle = ink("--focus");
    ctx.globalAlpha = 0.2;
    ctx.fillRect(a, top, b - a, base - top);
    ctx.globalAlpha = 1;
    line(a, ink("--focus"));
    line(b, ink("--focus"));
  } else if (pointer.x >= LEFT && pointer.x <= LEFT + plot.width) line(pointer.x, ink("--lane"));
}

// ---- The strip of the whole --------------------------------------------------------------------------------------

const overviewX = (axis) => LEFT + plot.width * axis / axisEnd();
function drawOverview() {
  const { ctx, height, scale } = fit($("overview"));
  const columns = plot.columns, { highest } = sample(0, axisEnd(), columns);
  const most = stack.live[peakIn(0, M)] || 1, y = (c) => height - 4 - (height - 10) * stack.live[highest[c]] / most;
  const x = (c) => LEFT + c / scale;
  ctx.beginPath();
  steps(ctx, columns, x, y, height - 4);
  ctx.fillStyle = ink("--lane");
  ctx.globalAlpha = 0.6;
  ctx.fill();
  ctx.globalAlpha = 1;
  const [a, b] = [overviewX(view.from), Math.max(overviewX(view.from) + 2, overviewX(view.to))];
  ctx.fillStyle = ink("--paper");
  ctx.globalAlpha = 0.72;
  ctx.fillRect(LEFT, 0, a - LEFT, height);
  ctx.fillRect(b, 0, LEFT + plot.width - b, height);
  ctx.globalAlpha = 1;
  ctx.strokeStyle = ctx.fillStyle = ink("--focus");
  ctx.strokeRect(a + 0.5, 1.5, Math.max(1, b - a - 1), height - 4);
  for (const edge of [a, b]) ctx.fillRect(edge - 2, height / 2 - 9, 4, 18);
  ctx.fillStyle = ink("--ink");
  ctx.fillRect(overviewX(axisOf(view.moment)), 2, 1, height - 4);
}
