// What the reader does with a table or a chart: sort it, copy it, save it as CSV or SVG, and reach all of it by arrow keys.

const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const byId = (id) => document.getElementById(id);
const words = JSON.parse(byId("words").textContent);
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (match, name) => values[name] ?? match);
const tell = (text) => { byId("status").textContent = text; };
function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// --- Sorting: a button in each heading of a sortable table, within its classes where it has any.
const natural = new Intl.Collator("en", { numeric: true });
const plain = (text) => text.replace(/\s+/g, " ").trim();
const visible = (node) => {
  const copy = node.cloneNode(true);
  all(".copy, .hide, .more:not(.figure-link), .anchor, small, .sr, svg", copy).forEach((n) => n.remove());
  return plain(copy.textContent);
};
const ascii = (text) => text.replace(/\u2212/g, "-");
function valueOf(row, column) {
  const cell = row.cells[column];
  if (!cell.classList.contains("num")) return visible(cell);
  const number = parseFloat(cell.dataset.v ?? ascii(visible(cell)).replace(/[,±<]/g, ""));
  return Number.isNaN(number) ? null : number;
}
function sortRows(table, heading, down) {
  const column = heading.cellIndex;
  all("th[aria-sort]", table).forEach((th) => (th.ariaSort = "none"));
  heading.ariaSort = down ? "descending" : "ascending";
  table.classList.add("sorted");
  for (const body of table.tBodies) {
    const rows = [...body.rows].filter((row) => !row.classList.contains("head")).map((row) => [valueOf(row, column), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null); // what is absent stays at the end
      const order = typeof a === "number" && typeof b === "number" ? a - b : natural.compare(a, b);
      return down ? -order : order;
    });
    body.append(...rows.map(([, row]) => row));
  }
}
function sort(table, heading) {
  const down = heading.ariaSort === "ascending";
  sortRows(table, heading, down);
  keepSort(table, heading);
  tell(fill(words.sorted, { name: visible(heading.querySelector("button span") ?? heading), way: down ? words.down : words.up }));
}
function sortable(table) {
  for (const heading of all("thead tr:last-child > th", table)) {
    if (heading.dataset.sort === "no" || heading.ariaSort) continue;
    const button = make("button", { type: "button" });
    button.append(make("span", {}, ...heading.childNodes));
    heading.append(button);
    heading.ariaSort = "none";
    button.addEventListener("click", () => sort(table, heading));
  }
}

// --- A table as rows of cells for a sheet: a figure, its unit, the ends of its interval and its remarks are cells of their own.
const FIGURE = /^([+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?%?)(?: (\S+(?: \S+)?))?$/;
function figureOf(cell) {
  const text = ascii(cell.querySelector("b") ? visible(cell.querySelector("b")) : visible(cell));
  const match = FIGURE.exec(text);
  return match ? [match[1].replace(/,/g, ""), match[2] ?? ""] : [text === "–" ? "" : text, ""];
}
function columnOf(table, heading, rows) {
  const cells = rows.map((row) => row.cells[heading.cellIndex]);
  const unit = heading.querySelector("small");
  const name = visible(heading) + (unit ? ` (${plain(unit.textContent)})` : "");
  const title = heading.dataset.group ? `${heading.dataset.group}: ${name}` : name;
  const figures = heading.classList.contains("num");
  const noted = (cell) => all(":scope > small, :scope > button > small", cell).map((n) => plain(n.textContent)).join("; ");
  const parts = [[title, figures ? (cell) => figureOf(cell)[0] : visible]];
  if (figures && cells.some((cell) => figureOf(cell)[1])) parts.push([words.unit, (cell) => figureOf(cell)[1]]);
  if (cells.some((cell) => cell.querySelector(".ci"))) {
    const ends = (cell) => ascii(cell.querySelector(".ci")?.textContent ?? "").replace(/[()[\],\s]/g, "").split(/–|;/);
    parts.push([words.lowest, (cell) => ends(cell)[0]], [words.highest, (cell) => ends(cell)[1] ?? ""]);
  }
  if (cells.some(noted)) parts.push([words.note, noted]);
  return { place: heading.cellIndex, parts };
}
function gridOf(table) {
  const rows = [...table.tBodies].flatMap((body) => [...body.rows]).filter((row) => !row.hidden && !row.closest("tbody").hidden);
  const headings = [...table.tHead.rows[table.tHead.rows.length - 1].cells].filter((cell) => !cell.classList.contains("plot"));
  const columns = headings.map((heading) => columnOf(table, heading, rows));
  const safe = (text) => (/^[=+@]|^-(?![\d.])/.test(text) ? `'${text}` : text); // no formula in the sheet
  const line = (row) => columns.flatMap(({ place, parts }) => parts.map(([, of]) => safe(of(row.cells[place]))));
  return [columns.flatMap(({ parts }) => parts.map(([title]) => safe(title))), ...rows.map(line)];
}
const tsv = (table) => gridOf(table).map((line) => line.join("\t")).join("\n") + "\n";
const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
const csv = (table) => "\ufeff" + gridOf(table).map((line) => line.map(quoted).join(",")).join("\r\n") + "\r\n";

// --- Copying: text to the clipboard; where a page from a file may not, what was to be copied is left selected.
async function copy(text, button, label, node) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = words.copied;
    tell(words.copied);
  } catch {
    const area = make("textarea", { value: text, readOnly: true, ariaHidden: "true" });
    (button.closest("dialog") ?? document.body).append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    button.focus();
    if (!done && node) getSelection().selectAllChildren(node);
    button.textContent = done ? words.copied : words.select;
    tell(button.textContent);
  }
  setTimeout(() => (button.textContent = label), 2500);
}

// --- Saving: files that are made from the page.
function save(title, ending, type, text) {
  const stem = (name) => name.normalize("NFKC").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "").slice(0, 60);
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: `${stem(title) || "fleetmark"}.${ending}` });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
const SVG = "http://www.w3.org/2000/svg";
function draw(tag, properties, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
function picture(drawn, title) {
  const svg = drawn.cloneNode(true);
  svg.setAttribute("xmlns", SVG);
  svg.setAttribute("style", "background:#fff;color:#111;font-family:system-ui,sans-serif");
  svg.removeAttribute("aria-hidden");
  svg.prepend(draw("title", {}, title));
  return `${new XMLSerializer().serializeToString(svg)}\n`;
}
// The plots in a table's rows as one drawing, with the names of the rows on the left and their ratios on the right.
function plotsOf(table) {
  const height = (svg) => Number(svg.getAttribute("height")) + 4;
  const width = Number(table.querySelector("svg.forest").getAttribute("width"));
  const sides = all("thead th", table).filter((th) => th.querySelector(".mark-of"));
  const right = (n) => 270 + width + 130 * n;
  const parts = [];
  let y = 4;
  for (const row of table.rows) {
    const plot = row.querySelector("svg.forest");
    if (!plot || row.hidden || row.closest("tbody")?.hidden) continue;
    const nested = plot.cloneNode(true);
    nested.setAttribute("x", 260);
    nested.setAttribute("y", y);
    const base = y + height(plot) / 2 + 3;
    const bold = row.classList.contains("head") || row.closest("thead") ? "bold" : "normal";
    const text = (x, words) => draw("text", { x, y: base, "font-size": 11, "font-weight": bold, fill: "currentColor" }, words);
    parts.push(nested);
    if (!row.closest("thead")) parts.push(text(4, visible(row.cells[0]).slice(0, 44)));
    for (const [n, side] of sides.entries()) {
      const cell = row.cells[side.cellIndex];
      if (!row.closest("thead")) parts.push(text(right(n), plain([cell.querySelector("b"), cell.querySelector(".ci")].map((e) => e?.textContent ?? "").join(" ")) || visible(cell)));
      else {
        const mark = side.querySelector(".mark-of").cloneNode(true);
        mark.setAttribute("x", right(n));
        mark.setAttribute("y", base - 10);
        parts.push(mark, text(right(n) + 16, (side.dataset.group ?? visible(side)).slice(0, 18)));
      }
    }
    y += height(plot);
  }
  const wide = right(sides.length);
  return draw("svg", { width: wide, height: y + 4, viewBox: `0 0 ${wide} ${y + 4}` }, ...parts);
}

// --- One tab stop for all that acts in a box; arrow keys move within it.
const ACTS = "button, a[href], summary";
function rove(box) {
  const items = () => all(ACTS, box).filter((item) => item.checkVisibility());
  const first = () => box.querySelector("thead button") ?? box.querySelector(ACTS);
  const only = (stop) => {
    for (const item of all(ACTS, box)) item.tabIndex = item === stop ? 0 : -1;
  };
  only(first());
  box.addEventListener("focusin", (event) => event.target.matches(ACTS) && only(event.target));
  box.addEventListener("focusout", (event) => box.contains(event.relatedTarget) || only(first()));
  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    const next = neighbour(items(), event.target, event.key);
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
}
function neighbour(items, from, key) {
  const at = items.indexOf(from);
  if (at < 0) return null;
  if (key === "ArrowRight") return items[at + 1];
  if (key === "ArrowLeft") return items[at - 1];
  if (key === "Home") return items[0];
  if (key === "End") return items[items.length - 1];
  if (key !== "ArrowDown" && key !== "ArrowUp") return null;
  const here = from.getBoundingClientRect();
  const way = key === "ArrowDown" ? 1 : -1;
  const other = items.map((item) => [item, item.getBoundingClientRect()]).filter(([, box]) => way * (box.top - here.top) > 4);
  const near = Math.min(...other.map(([, box]) => Math.abs(box.top - here.top)));
  const line = other.filter(([, box]) => Math.abs(box.top - here.top) <= near + 4);
  return line.sort(([, a], [, b]) => Math.abs(a.left - here.left) - Math.abs(b.left - here.left))[0]?.[0];
}

// --- What a table and a chart get when they are first shown.
function tools(region) {
  const table = region.querySelector("table");
  if (!table || region.parentElement.classList.contains("tabled")) return;
  const title = table.dataset.title ?? plain(table.caption?.textContent ?? document.title);
  const button = (className, textContent, ariaLabel, act) => {
    const made = make("button", { type: "button", className, textContent });
    if (ariaLabel) made.ariaLabel = ariaLabel;
    made.addEventListener("click", () => act(made));
    return made;
  };
  const bar = make("div", { className: "table-tools" });
  bar.append(button("copy-table", words.copyTable, "", (made) => copy(tsv(table), made, words.copyTable, table)));
  bar.append(button("save-table", "CSV", `${fill(words.save, { kind: "CSV" })}: ${title}`, () => save(title, "csv", "text/csv;charset=utf-8", csv(table))));
  if (table.querySelector("tbody svg.forest"))
    bar.append(button("save-chart", "SVG", `${fill(words.save, { kind: "SVG" })}: ${title}`, () => save(title, "svg", "image/svg+xml", picture(plotsOf(table), title))));
  const box = make("div", { className: "tabled", role: "group", ariaLabel: title, ariaDescription: words.arrows });
  region.replaceWith(box);
  region.removeAttribute("tabindex"); // the buttons in its head are the tab stop, and scroll it
  region.removeAttribute("role");
  region.removeAttribute("aria-label");
  box.append(bar, region);
  rove(box);
}
// A choice of one series of a chart; the marks of the others go. A mark's title begins with the name of its series.
function seriesOf(figure) {
  const names = JSON.parse(figure.dataset.series);
  const options = [make("option", { value: "", textContent: words.all }), ...names.map((name) => make("option", { value: name, textContent: name }))];
  const select = make("select", { className: "series" }, ...options);
  select.addEventListener("change", () => {
    state.set({ [seriesKey(select)]: select.value });
    showSeries(select);
    tell(select.value || words.all);
  });
  return make("label", {}, `${words.series} `, select);
}
// The name of a choice in the address: its section, and its place among the choices there.
function seriesKey(select) {
  const section = select.closest("section[id]");
  return `${section.id}-series${all("select.series", section).indexOf(select) + 1}`;
}
function showSeries(select) {
  for (const title of all("svg title", select.closest("figure")))
    title.parentElement.style.display = !select.value || title.textContent.startsWith(`${select.value}:`) ? "" : "none";
}
function chartTools(figure) {
  const svg = figure.querySelector("svg");
  if (!svg) return;
  if (figure.dataset.series) figure.querySelector("figcaption").append(" ", seriesOf(figure));
  const title = plain(figure.querySelector("figcaption b")?.textContent ?? figure.ariaLabel ?? document.title);
  const button = make("button", { type: "button", className: "save-chart", textContent: "SVG", ariaLabel: `${fill(words.save, { kind: "SVG" })}: ${title}` });
  button.addEventListener("click", () => save(title, "svg", "image/svg+xml", picture(svg, title)));
  figure.querySelector("figcaption").append(" ", button);
}
