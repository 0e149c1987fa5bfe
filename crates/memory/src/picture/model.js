// What the data says, with what is derived from it.

const picture = JSON.parse(document.getElementById("data").textContent);

const T = WORDS[picture.lang] ?? WORDS.en;

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
