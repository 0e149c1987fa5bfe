// Opens the memory picture in a real browser and uses it: node crates/memory/tests/browser/check.mjs
//
// First `cargo test -p osteon-memory --test picture` writes the pages. Needs Node 20 and Chromium (CHROMIUM=path); no
// packages: it speaks the browser's own protocol over a pipe. With --shots DIR it keeps screenshots, and with
// --map FILE the README's picture.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const option = (name) => process.argv.includes(name) ? process.argv[process.argv.indexOf(name) + 1] : null;
const pages = join(fileURLToPath(import.meta.url), "../../../../../target/tmp/picture");
const shots = option("--shots");
if (!existsSync(pages)) throw new Error(`no pages in ${pages}: run cargo test -p osteon-memory --test picture first`);
if (shots) mkdirSync(shots, { recursive: true });

// ---- The browser ---------------------------------------------------------------------------------------------

const profile = mkdtempSync(join(tmpdir(), "picture-"));
const browser = spawn(process.env.CHROMIUM ?? "chromium", [
  "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--lang=en", `--user-data-dir=${profile}`, "--remote-debugging-pipe", "about:blank",
], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });

let lastId = 0, unread = "";
const waiting = new Map(), problems = [], requests = [];
let onLoad = () => {};
browser.stdio[4].setEncoding("utf8").on("data", (chunk) => {
  const parts = (unread + chunk).split("\0");
  unread = parts.pop();
  for (const message of parts.map((part) => JSON.parse(part))) {
    if (message.id) {
      const { resolve, reject } = waiting.get(message.id);
      if (message.error) reject(new Error(message.error.message)); else resolve(message.result);
    } else if (message.method === "Page.loadEventFired") onLoad();
    else if (message.method === "Runtime.exceptionThrown") problems.push(message.params.exceptionDetails.exception?.description ?? message.params.exceptionDetails.text);
    else if (message.method === "Log.entryAdded") problems.push(message.params.entry.text);
    else if (message.method === "Runtime.consoleAPICalled") problems.push(`console.${message.params.type}`);
    else if (message.method === "Network.requestWillBeSent") requests.push(message.params.request.url);
  }
});

let sessionId;
function send(method, params = {}) {
  const id = ++lastId;
  browser.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + "\0");
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

async function evaluate(expression) {
  const { result, exceptionDetails } = await send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
  if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
  return result.value;
}
const settle = () => evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))");

async function open(name, { width = 1440, height = 900, dark = false, scale = 1 } = {}) {
  await send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: scale, mobile: false });
  await send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }] });
  const loaded = new Promise((resolve) => { onLoad = resolve; });
  await send("Page.navigate", { url: pathToFileURL(join(pages, `${name}.html`)).href });
  await loaded;
  await settle();
}

async function shot(file) {
  const { data } = await send("Page.captureScreenshot", { format: "png" });
  writeFileSync(file, Buffer.from(data, "base64"));
}
const keep = (name) => shots ? shot(join(shots, `${name}.png`)) : null;

const CODES = { ArrowDown: 40, ArrowUp: 38, ArrowLeft: 37, ArrowRight: 39, Enter: 13, Escape: 27, End: 35, Home: 36, PageDown: 34, PageUp: 33 };
async function press(...keys) {
  for (const key of keys) {
    const text = key === "Enter" ? "\r" : key.length === 1 ? key : undefined;
    await send("Input.dispatchKeyEvent", { type: "keyDown", key, text, windowsVirtualKeyCode: CODES[key] });
    await send("Input.dispatchKeyEvent", { type: "keyUp", key, windowsVirtualKeyCode: CODES[key] });
  }
  await settle();
}
async function pointAt(selector, part = 0.5) {
  const [x, y] = await evaluate(`(() => { const r = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect(); return [r.left + r.width * ${part}, r.top + r.height / 2]; })()`);
  await send("Input.dispatchMouseEvent", { type: "mouseMoved", x, y });
  await settle();
  return { x, y };
}
async function click(selector) {
  const at = { ...await pointAt(selector), button: "left", clickCount: 1 };
  await send("Input.dispatchMouseEvent", { type: "mousePressed", ...at });
  await send("Input.dispatchMouseEvent", { type: "mouseReleased", ...at });
  await settle();
}

// ---- What is checked -----------------------------------------------------------------------------------------

let failed = 0;
function check(what, got, wanted) {
  const same = typeof wanted === "function" ? wanted(got) : JSON.stringify(got) === JSON.stringify(wanted);
  if (!same) failed++;
  const measured = typeof got === "number" && typeof wanted === "function" ? ` (${Math.round(got)})` : "";
  console.log(`${same ? "ok  " : "FAIL"} ${what}${measured}${same ? "" : `: ${JSON.stringify(got)}${typeof wanted === "function" ? "" : `, not ${JSON.stringify(wanted)}`}`}`);
}
const count = (selector) => evaluate(`document.querySelectorAll(${JSON.stringify(selector)}).length`);
const text = (selector) => evaluate(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? null`);
const cursor = () => text(".cursor .name");
const fits = () => evaluate("document.documentElement.scrollWidth <= window.innerWidth");

async function checkTraining() {
  await open("train");
  check("opens on the tensor that pins most", [await cursor(), await text(".pins b")], ["first_rows", "pins 256 MiB that it does not reach"]);
  check("storages by waste", await evaluate("[...document.querySelectorAll('.head .name')].slice(0, 3).map((n) => n.innerText)"), ["storage #17", "storage #37", "replay"]);
  await press("/");
  check("/ goes to the search", await evaluate("document.activeElement.id"), "search");
  await press(..."kv nowhere");
  check("search finds nothing", [await count(".head"), await text("#count")], [0, "0 storages, 0 tensors"]);
  await press("Escape");
  check("Esc clears it", await count(".head"), 7);
  await press("/", ..."narrow buffer.rs", "Enter");
  check("search by op and origin", [await count(".head"), await count(".tensor"), await evaluate("document.activeElement.id")], [1, 2, "list"]);
  await press("/", "Escape", "Home");
  const walk = [];
  for (let i = 0; i < 4; i++) { walk.push(await cursor()); await press("ArrowDown"); }
  check("↓ walks storages and tensors", walk, ["storage #17", "first_rows", "storage #37", "q"]);
  await press("ArrowLeft", "ArrowLeft");
  check("← goes to the storage, then folds it", await evaluate("document.querySelector('.cursor').ariaExpanded"), "false");
  await press("Enter");
  check("Enter unfolds it", await evaluate("document.querySelector('.cursor').ariaExpanded"), "true");
  check("the tree names the active item", await evaluate("document.getElementById(document.getElementById('list').getAttribute('aria-activedescendant')).classList.contains('cursor')"), true);
  await click(".tensor:not(.cursor)");
  check("the pointer marks runs on the bar", await count(".bar.focus-runs"), 1);
  await pointAt(".head.storage .bar", 0.7);
  check("the pointer on a bar tells the bytes", await text("#tip"), (tip) => tip.includes("reached by none"));
  await keep("tip");
  check("log scale lengths", await evaluate("new Set([...document.querySelectorAll('.head .bar')].map((b) => b.offsetWidth)).size"), 7);
  await click("#scale label:last-child span");
  check("linear scale is linear", await evaluate("(() => { const w = [...document.querySelectorAll('.head .bar')].map((b) => parseFloat(b.style.width)); return Math.abs(w[1] / w[0] - 18874368 / 268435456) < 0.001; })()"), true);
  await keep("linear");
  await click("#theme");
  check("the theme changes", await evaluate("getComputedStyle(document.body).backgroundColor"), "rgb(23, 24, 22)");
  await click("#fold");
  check("folds all", [await count(".head"), await count(".tensor")], [7, 0]);
  for (const [width, dark] of [[1600, false], [1440, true], [1200, false], [1000, true], [800, false]]) {
    await open("train", { width, dark });
    check(`no sideways scrolling at ${width}`, await fits(), true);
    await keep(`train-${width}`);
  }
  await open("train-zh");
  check("speaks Chinese", [await text("#totals dt"), await evaluate("document.documentElement.lang")], ["已分配", "zh"]);
  await keep("train-zh");
}

async function checkHuge() {
  const start = Date.now();
  await open("huge");
  check("20,000 tensors open within 3 s", Date.now() - start, (ms) => ms < 3000);
  check("like storages are grouped", await evaluate("[...document.querySelectorAll('.head .name')].map((n) => n.innerText)"), (names) => names.length < 30 && names.includes("model.layers.*.norm.weight") && names.includes("mul at src/train.rs:40"));
  await keep("huge");
  await press("/", ..."row.", "Enter");
  check("a search among them", await text("#count"), "1 storage, 12,000 tensors");
  await press("End", "Enter");
  check("shows all", await evaluate("document.getElementById('list').offsetHeight"), (h) => h > 12_000 * 40);
  check("draws only the window", await count(".tensor"), (n) => n > 10 && n < 80);
  await press("End", "ArrowUp");
  check("to the end", [await cursor(), await evaluate("(() => { const r = document.querySelector('.cursor').getBoundingClientRect(); return r.top > 0 && r.bottom < innerHeight; })()")], ["row.11999", true]);
  await keep("huge-end");
  const slowest = await evaluate(`(async () => {
    let worst = 0;
    for (let y = 0; y < 60; y++) {
      const t = performance.now();
      window.scrollTo(0, y * 9001);
      await new Promise(requestAnimationFrame);
      worst = Math.max(worst, performance.now() - t);
    }
    return worst;
  })()`);
  check("scrolls within 100 ms a frame", slowest, (ms) => ms < 100);
  const typing = await evaluate(`(() => { const s = document.getElementById("search"); const t = performance.now(); s.value = "layers.59"; s.dispatchEvent(new Event("input")); return performance.now() - t; })()`);
  check("searches within 200 ms", typing, (ms) => ms < 200);
  await open("huge");
  await press("/", "Enter");
  check("End, Home", [await press("End"), await press("Home"), await evaluate("window.scrollY")].at(-1), (y) => y < 300);
  await press("ArrowRight");
  check("→ unfolds a group", await count(".head.storage"), (n) => n > 3);
  await keep("huge-group");
}

async function checkHostile() {
  for (const dark of [false, true]) {
    await open("hostile", { dark });
    check("hostile names run nothing", [await evaluate("document.title.includes('<img')"), await count("img"), await count("script")], [true, 0, 2]);
    check("what would turn the text is in sight", await text("h1"), (h1) => h1.includes("\\u{202e}gnp.exe\\u{a}"));
    check("nor widen the page", await fits(), true);
    await keep(`hostile-${dark ? "dark" : "light"}`);
  }
  await open("none");
  check("nothing to draw is said", await evaluate("document.getElementById('list').dataset.message"), "No storages: nothing is held.");
  await keep("none");
}

try {
  const { targetInfos } = await send("Target.getTargets");
  ({ sessionId } = await send("Target.attachToTarget", { targetId: targetInfos.find((t) => t.type === "page").targetId, flatten: true }));
  for (const domain of ["Page", "Runtime", "Log", "Network"]) await send(`${domain}.enable`);
  if (option("--map")) {
    await open("train", { width: 1280, height: 1090, scale: 1.2 });
    await shot(option("--map"));
  }
  await checkTraining();
  await checkHuge();
  await checkHostile();
  check("no error in the console", problems, []);
  check("no request but for the pages", requests.filter((url) => !url.startsWith("file:")), []);
} finally {
  browser.kill();
  await new Promise((resolve) => browser.once("exit", resolve));
  rmSync(profile, { recursive: true, force: true });
}
console.log(failed ? `${failed} failed` : "all passed");
process.exit(failed ? 1 : 0);
