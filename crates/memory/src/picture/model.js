// What the data says, with what is derived from it; numbers and names as they are shown.

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
