// A report's figures and lists; a click on the name of a column sorts by it.

const sheet = JSON.parse($("data").textContent);
const WORDS = { en: { dark: "Dark", light: "Light" }, zh: { dark: "深色", light: "浅色" } };

const UNIT = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, PiB: 2 ** 50, EiB: 2 ** 60, ns: 1, "µs": 1e3, ms: 1e6, s: 1e9 };
/** What a cell counts, whatever its unit; the empty ones come last. */
function amount(cell) {
  const [number, unit] = cell.split(" ");
  return cell === "" ? -Infinity : Number(number) * (UNIT[unit] ?? 1);
}

function tableOf({ name, columns, rows }) {
  const body = el("tbody"), head = el("tr");
  const fill = (order) => body.replaceChildren(...order.map((row) => el("tr", "", {}, ...row.map((cell, i) => el("td", columns[i].is_number ? "number" : "", {}, nameOf(cell, 20000))))));
  columns.forEach((column, i) => {
    const button = el("button", "", { type: "button" }, nameOf(column.name));
    const th = el("th", column.is_number ? "number" : "", { scope: "col" }, button);
    button.addEventListener("click", () => {
      const isDown = th.getAttribute("aria-sort") !== "descending";
      for (const other of head.children) other.removeAttribute("aria-sort");
      th.setAttribute("aria-sort", isDown ? "descending" : "ascending");
      const compare = column.is_number ? (a, b) => amount(b[i]) - amount(a[i]) : (a, b) => b[i].localeCompare(a[i], undefined, { numeric: true });
      fill([...rows].sort((a, b) => isDown ? compare(a, b) : compare(b, a)));
    });
    head.append(th);
  });
  fill(rows);
  return el("section", "table", {}, el("h2", "", {}, nameOf(name)), el("table", "", {}, el("thead", "", {}, head), body));
}

$("heading").querySelector("h1").textContent = cut(sheet.title);
document.querySelector("main").append(facts(sheet.figures), ...sheet.tables.filter((t) => t.rows.length).map(tableOf));
listenToTheme(WORDS[document.documentElement.lang] ?? WORDS.en);
