"use strict";
// The page reads without any of this; it adds sorting, filtering, copying, a theme switch and what printing needs.
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

// Sorting: a button in each heading of a sortable table.
const natural = new Intl.Collator("en", { numeric: true });
function valueOf(row, column) {
  const cell = row.cells[column];
  if (!cell.classList.contains("num")) return cell.textContent.trim();
  const text = cell.dataset.v ?? (cell.firstChild?.nodeType === 3 ? cell.firstChild.data : cell.textContent);
  const number = parseFloat(text.replace(/,/g, ""));
  return Number.isNaN(number) ? null : number;
}
function sort(table, heading) {
  const column = heading.cellIndex;
  const down = heading.ariaSort === "ascending";
  all("th[aria-sort]", table).forEach((th) => (th.ariaSort = "none"));
  heading.ariaSort = down ? "descending" : "ascending";
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [valueOf(row, column), row]);
  rows.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null); // what is absent stays at the end
    const order = typeof a === "number" && typeof b === "number" ? a - b : natural.compare(a, b);
    return down ? -order : order;
  });
  body.append(...rows.map(([, row]) => row));
}
for (const table of all("table.sortable")) {
  for (const heading of all("thead th", table)) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    heading.ariaSort = "none";
    button.addEventListener("click", () => sort(table, heading));
  }
}

// Filtering all metrics: every word must occur in a row; folds with a match open.
const filter = document.getElementById("filter");
if (filter) {
  const found = document.getElementById("found");
  const rows = all("#metrics tbody tr").map((row) => [row, null]);
  const folds = all("#metrics details");
  filter.closest(".filter").hidden = false;
  let later = 0;
  const apply = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const pair of rows) {
      const [row] = pair;
      const folded = row.closest("details");
      pair[1] ??= `${row.closest(".workload").querySelector("summary").textContent} ${folded.querySelector("summary").textContent} ${row.textContent}`.toLowerCase();
      row.hidden = !words.every((word) => pair[1].includes(word));
      count += !row.hidden;
    }
    for (const fold of folds) {
      const any = fold.querySelector("tbody tr:not([hidden])") !== null;
      fold.hidden = !any;
      fold.open = words.length > 0 && any;
    }
    found.textContent = words.length ? `${count} of ${rows.length} rows` : "";
  };
  filter.addEventListener("input", () => { clearTimeout(later); later = setTimeout(apply, 120); });
}

// Copying a command.
async function copy(button) {
  const code = button.previousElementSibling;
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "copied";
  } catch {
    // No clipboard for pages opened from a file, in some browsers: leave it selected.
    getSelection().selectAllChildren(code);
    button.textContent = "selected: press Ctrl-C";
  }
  setTimeout(() => (button.textContent = "copy"), 2500);
}
for (const button of all(".copy")) {
  button.hidden = false;
  button.addEventListener("click", () => copy(button));
}

// Light or dark, whatever the system says.
const theme = document.getElementById("theme");
theme.hidden = false;
theme.addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});

// Paper cannot be unfolded: everything but the long tables of all metrics opens for it.
let opened = [];
addEventListener("beforeprint", () => {
  opened = all("details:not([open])").filter((fold) => !fold.closest("#metrics"));
  opened.forEach((fold) => (fold.open = true));
});
addEventListener("afterprint", () => opened.forEach((fold) => (fold.open = false)));
