// What every page needs: numbers and names as they are shown, elements, the theme.
//
// Names come from programs and files: they enter the document through textContent and setAttribute, never as markup.
"use strict";

// ---- Numbers and names -----------------------------------------------------------------------------------------

const int = new Intl.NumberFormat("en").format;
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

/** The largest of any number of values, 0 of none. */
const largestOf = (values) => values.reduce((a, b) => Math.max(a, b), 0);

/** The first index of sorted `things` for which `isPast` holds. */
function firstWhere(things, isPast) {
  let low = 0, high = things.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isPast(things[middle])) high = middle; else low = middle + 1;
  }
  return low;
}

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

/** A list of terms and their values; what has no value is left out. */
function facts(pairs) {
  const dl = el("dl", "facts");
  for (const [term, ...values] of pairs) {
    if (values[0] === null || values[0] === "") continue;
    const words = values.flatMap((value, i) => [i ? " · " : "", nameOf(String(value), 20000)]);
    dl.append(el("dt", "", {}, term), el("dd", "", {}, ...words));
  }
  return dl;
}

/** Shows the note at the pointer, inside the window. */
function placeTip({ clientX, clientY }) {
  const tip = $("tip");
  tip.hidden = false;
  tip.style.left = `${Math.max(8, Math.min(clientX + 14, window.innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.min(clientY + 16, window.innerHeight - tip.offsetHeight - 8)}px`;
}
const hideTip = () => { $("tip").hidden = true; };

/** The button that turns light to dark; until it is used, the system decides. */
function listenToTheme(words, changed = () => {}) {
  const root = document.documentElement, system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
  const show = () => { $("theme").textContent = isDark() ? words.light : words.dark; changed(); };
  $("theme").addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; show(); });
  system.addEventListener("change", show);
  show();
}
