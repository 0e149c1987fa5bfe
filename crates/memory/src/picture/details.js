// The panel that tells about one tensor, storage or group, and the note beside the pointer on a bar.

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
        ...(others === 0 && t.op ? [" ", T.compact] : [])));
    }
    parts.push(facts([[T.op, t.op], [T.site, t.site], [T.dtype, t.dtype], [T.shape, list(t.shape)], [T.stride, tuple(t.stride)], [T.offset, int(t.offset)],
      [T.elements, int(t.numel)], [T.reached, exactBytes(t.reached_bytes)], [T.firstByte, t.runs.length ? int(t.runs[0][0]) : ""], [T.kind, t.view ? T.view : null], [T.note, t.note],
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
  placeTip(event);
}
