// The page reads without any of this; it adds filtering, folding, another baseline, units, links, hosts on demand, a theme
// switch and what printing needs. What the reader chooses is kept in the address (state.js).
// --- Units: figures in the units people read, or in base units with as many digits.
let base = false;
function baseText(text, factor) {
  return text.replace(/\d+(?:,\d{3})*(\.\d+)?(e[+-]?\d+)?/g, (number, _, __, at) => {
    if (text[at + number.length] === "%") return number;
    const value = Number(number.replace(/,/g, ""));
    if (!value) return number;
    const digits = Math.max(2, number.replace(/e.*/, "").replace(/[^\d]/g, "").replace(/^0+/, "").length);
    const scaled = value * factor;
    return scaled >= 1e7 || scaled < 1e-3 ? scaled.toExponential(Math.min(digits, 15) - 1) : String(Number(scaled.toPrecision(Math.min(digits, 15))));
  });
}
function scaleOf(cell) {
  const row = cell.closest("tr");
  return row.dataset.f ? row : cell.closest("table").tHead?.rows[0].cells[cell.closest("td, th").cellIndex];
}
function retext(node, change) {
  for (const child of node.childNodes) {
    if (child.nodeType === 3) {
      child.scaled ??= child.data;
      child.data = base ? change(child.scaled) : child.scaled;
    } else if (child.nodeType === 1) retext(child, change);
  }
}
function units(root) {
  for (const cell of all(".q", root)) {
    const at = scaleOf(cell);
    if (at?.dataset.f) retext(cell, (text) => baseText(text, Number(at.dataset.f)));
  }
  for (const cell of all("td[data-u]", root)) {
    const { f, s } = (cell.dataset.f ? cell : cell.parentElement.querySelector("td[data-f]"))?.dataset ?? {};
    if (f) retext(cell, (text) => baseText(text, Number(f)).replace(` ${s}`, ` ${cell.dataset.u}`));
  }
  for (const unit of all("table.tabular thead small", root)) {
    const place = unit.closest("th").cellIndex + 1;
    const known = unit.closest("table").querySelector(`tbody td:nth-child(${place})[data-s]`)?.dataset;
    if (known) unit.textContent = base ? known.u : known.s;
  }
  for (const cell of all(".u", root)) {
    const at = cell.closest("[data-u]");
    if (at) retext(cell, () => (at.dataset.u === "1" ? "" : at.dataset.u));
  }
}

// --- Filtering rows by words, and by what is worse or cannot be told; folding the benchmarks of a class.
let terms = [];
// Rows of one group, such as a submitter: benchmarks that it ran, and rows that name it. Tables that name no group stay.
const group = byId("group");
const groupsOf = (text) => [...group.options].slice(1).map((option) => option.value).filter((name) => text === name || text.startsWith(`${name} of `) || text.startsWith(`${name}/`));
function groups(row) {
  row.groups ??= new Set((row.querySelector("[data-o]") ? membersOf(row) : [...row.cells].map((cell) => plain(cell.textContent))).flatMap(groupsOf));
  return row.groups;
}
function inGroup(row) {
  const table = row.closest("table");
  if (!group?.value || !table) return true;
  table.names ??= [...table.tBodies].some((body) => [...body.rows].some((other) => groups(other).size));
  return !table.names || groups(row).has(group.value);
}
function shown(row) {
  if (!inGroup(row)) return false;
  if (byId("doubt")?.value === "doubt" && (row.dataset.b !== undefined || row.closest(".tabular tbody.class")) && row.dataset.doubt === undefined) return false;
  if (!terms.length) return true;
  row.words ??= `${row.closest("tbody.class")?.rows[0].cells[0].textContent ?? ""} ${row.closest(".class, .workload")?.querySelector("h3, summary")?.textContent ?? ""} ${row.closest("details")?.querySelector("summary")?.textContent ?? ""} ${row.textContent}`.toLowerCase();
  return terms.every((word) => row.words.includes(word));
}
function apply() {
  let count = 0, of = 0;
  const chosen = terms.length > 0 || byId("doubt")?.value === "doubt" || Boolean(group?.value);
  for (const row of all(".tabular tbody tr:not(.head)")) {
    row.hidden = !shown(row);
    of += 1;
    count += !row.hidden;
  }
  for (const body of all("tbody.class")) {
    body.hidden = chosen && body.querySelector("tr:not(.head):not([hidden])") === null;
    fold(body, chosen ? false : body.dataset.folded !== undefined);
  }
  for (const plot of all("details.chart")) plot.hidden = !shown(plot);
  for (const fold of all("#metrics details")) {
    const any = fold.querySelector("tbody tr:not([hidden])") !== null;
    fold.hidden = !any;
    if (terms.length) fold.open = any;
    else if (filtered) fold.open = false;
  }
  for (const fold of all("details.folded-table")) {
    const any = fold.querySelector("tbody tr:not([hidden])") !== null;
    fold.hidden = !any;
    if (terms.length) fold.open = any;
    else if (filtered) fold.open = false;
  }
  filtered = chosen;
  if (filtered) tell(fill(words.rows, { n: count, all: of }));
}
let filtered = false;
function fold(body, folded) {
  body.classList.toggle("folded", folded);
  const button = body.querySelector(".fold");
  if (button) button.ariaExpanded = String(!folded);
}
function foldable(body) {
  const name = body.querySelector(".head .name");
  if (!name || body.rows.length < 2) return;
  const button = make("button", { type: "button", className: "fold", textContent: name.textContent });
  button.addEventListener("click", () => fold(body, !body.classList.contains("folded")));
  name.replaceChildren(button);
  fold(body, body.dataset.folded !== undefined);
}

// --- What is added to a part of the page when it is first shown.
function equip(root) {
  for (const body of all("tbody.class", root)) foldable(body);
  for (const table of all("table.sortable", root)) sortable(table);
  for (const region of all(".scroll", root)) tools(region);
  for (const figure of all("figure", root)) chartTools(figure);
  for (const charts of all(".charts", root)) rove(charts);
  for (const button of all(".copy", root)) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button.previousElementSibling.textContent, button, words.copy, button.previousElementSibling));
  }
  for (const heading of all("section h2, section h3", root)) {
    const id = heading.closest("section[id]")?.id;
    if (!id || heading.closest(".caveats")) continue;
    const own = heading.id && !heading.id.endsWith("-h") ? heading.id : heading.parentElement.id === id ? id : null;
    if (!own) continue;
    const link = make("a", { className: "anchor", href: `#${own}`, textContent: "#" });
    link.ariaLabel = `${words.link}: ${visible(heading)}`;
    link.tabIndex = -1; // the links at the top of the page lead to the same addresses
    heading.append(link);
  }
  if (base) units(root);
}
document.addEventListener("click", (event) => {
  const link = event.target.closest?.(".anchor");
  if (link) navigator.clipboard?.writeText(state.address(decodeURIComponent(link.hash.slice(1)))).then(() => tell(words.linked), () => {});
  const more = event.target.closest?.(".more");
  if (more) detail(Number(more.dataset.m));
  const figure = event.target.closest?.(".figure-link");
  if (figure) origin(Number(figure.dataset.o));
});

// --- Another baseline: the parts that depend on it are exchanged for those of that baseline.
const parts = { 0: Object.fromEntries(all("[data-part]").map((part) => [part.dataset.part, part])) };
let face = 0;
function turn(number) {
  if (number === face) return;
  if (!parts[number]) {
    const template = document.querySelector(`template[data-face="${number}"]`);
    if (!template) return;
    const fragment = template.content.cloneNode(true);
    parts[number] = Object.fromEntries(all("[data-part]", fragment).map((part) => [part.dataset.part, part]));
    for (const part of Object.values(parts[number])) { document.adoptNode(part); equip(part); }
  }
  for (const [name, part] of Object.entries(parts[face])) part.replaceWith(parts[number][name]);
  const before = face ? `b${face}-` : "";
  const after = number ? `b${number}-` : "";
  for (const link of all("nav a")) {
    const id = link.hash.slice(1);
    const plain = before && id.startsWith(before) ? id.slice(before.length) : id;
    if (!byId(id) && byId(after + plain)) link.href = `#${after}${plain}`;
  }
  face = number;
  strip?.turn(number);
  document.title = words.titles?.[number] ?? document.title;
  for (const part of Object.values(parts[face])) units(part);
  apply();
  baseline.value = String(number);
}
const baseline = byId("baseline");
const nameOf = (number) => baseline.options[number].textContent;
function keepBaseline() {
  state.set({ baseline: face || /^b\d+-/.test(state.section) ? nameOf(face) : "" });
}
baseline?.addEventListener("change", () => {
  turn(Number(baseline.value));
  keepBaseline();
  tell(fill(words.baseline, { name: nameOf(face) }));
});
// A link to a section brings the baseline that the section is of.
function follow() {
  const id = state.section;
  if (id && baseline) {
    const number = /^b(\d+)-/.exec(id);
    if (number) turn(Number(number[1]));
    else if (face && !byId(id)) turn(0);
    keepBaseline();
  }
  if (id) byId(id)?.scrollIntoView();
}

// --- The address: the page shows what it says, also after "back". Values that fit nothing on the page change nothing.
const MOST_SORTED = 8; // tables whose order an address keeps
const sorted = () => state.get("sort").split(",").filter(Boolean).slice(-MOST_SORTED).map((text) => text.split(":"));
function keepSort(table, heading) {
  const others = sorted().filter(([id]) => id !== table.id).map((parts) => parts.join(":"));
  if (table.id) state.set({ sort: [...others, `${table.id}:${heading.cellIndex}:${heading.ariaSort}`].slice(-MOST_SORTED).join(",") });
}
function choose(select, value) {
  if (select) select.value = [...select.options].some((option) => option.value === value) ? value : select.options[0].value;
}
function restore() {
  byId("filter").value = state.get("filter");
  terms = termsOf(state.get("filter"));
  choose(byId("doubt"), state.get("rows"));
  choose(byId("units"), state.get("units"));
  choose(group, state.get("group"));
  for (const select of all("select.series")) {
    choose(select, state.get(seriesKey(select)));
    showSeries(select);
  }
  const name = state.get("baseline");
  const number = baseline && name ? [...baseline.options].findIndex((option) => option.textContent === name) : -1;
  if (baseline) turn(number >= 0 ? number : Number(/^b(\d+)-/.exec(state.section)?.[1] ?? 0));
  if (byId("units") && (byId("units").value === "base") !== base) {
    base = !base;
    units(document);
  }
  for (const [id, column, way] of sorted()) {
    const heading = byId(id)?.querySelector("thead tr:last-child")?.cells[Number(column)];
    if (heading?.ariaSort) sortRows(byId(id), heading, way === "descending");
  }
  if (filtered || terms.length || byId("doubt")?.value || group?.value) apply();
}

// --- The tools. They stay in view, so what a link leads to stops below them.
byId("tools").hidden = false;
function keepClear() {
  const bar = byId("tools");
  const covers = getComputedStyle(bar).position === "sticky" ? bar.offsetHeight : 0;
  document.documentElement.style.scrollPaddingTop = `${covers + 8}px`;
}
keepClear();
new ResizeObserver(keepClear).observe(byId("tools"));
all("header nav").forEach(rove);
let later = 0;
const termsOf = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);
byId("filter").addEventListener("input", (event) => {
  clearTimeout(later);
  later = setTimeout(() => {
    terms = termsOf(event.target.value);
    state.set({ filter: event.target.value.trim() });
    if (!terms.length) tell("");
    apply();
  }, 120);
});
byId("doubt")?.addEventListener("change", (event) => {
  state.set({ rows: event.target.value });
  tell("");
  apply();
});
group?.addEventListener("change", () => {
  state.set({ group: group.value });
  tell("");
  apply();
});
byId("units")?.addEventListener("change", (event) => {
  base = event.target.value === "base";
  state.set({ units: base ? "base" : "" });
  units(document);
  tell(base ? words.base : words.scaled);
});
const themes = ["system", "light", "dark"];
byId("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const next = themes[(themes.indexOf(root.dataset.theme ?? "system") + 1) % themes.length];
  if (next === "system") delete root.dataset.theme;
  else root.dataset.theme = next;
  byId("theme").textContent = words[next];
});

// --- Paper cannot be unfolded: everything but the long tables of all metrics opens for it.
let opened = [];
addEventListener("beforeprint", () => {
  opened = all("details:not([open])").filter((fold) => !fold.closest("#metrics"));
  opened.forEach((fold) => (fold.open = true));
});
addEventListener("afterprint", () => opened.forEach((fold) => (fold.open = false)));
