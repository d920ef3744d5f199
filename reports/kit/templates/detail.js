// What is behind a figure, in a dialog, from the figures that came with the page: hosts, repeats, raw files and commands.
const embeddedIn = (id) => JSON.parse(byId(id).textContent);
let figures = null; // of single hosts, by metric
let origins = null; // hosts, repeats, files and commands, by benchmark
const placesOf = (values) => Math.max(0, ...values.map((v) => (v === null ? 0 : (String(v).split(".")[1] ?? "").length)));
function written(value, places) {
  return value === null || value === undefined ? "" : value.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: 12 });
}
function numberCell(value, places) {
  const cell = make("td", { className: "num q", textContent: written(value, places) });
  if (value !== null && value !== undefined) cell.dataset.v = value;
  return cell;
}
function rowOf(name, side, cells, factor) {
  const long = name.length > 26;
  const head = make("th", {}, make("bdi", { textContent: name, className: long ? "host long" : "host", title: long ? name : "" }));
  head.scope = "row";
  const row = make("tr", {}, head, ...(side === null ? [] : [make("td", {}, make("bdi", { textContent: side }))]), ...cells);
  row.dataset.f = factor;
  return row;
}
// ``about``: t the title, u the unit shown, b the base unit. ``columns``: names, and whether they are of numbers.
function present(about, before, columns, rows) {
  const head = make("tr");
  for (const [name, isNumber] of columns) {
    const th = make("th", { textContent: name, className: isNumber ? "num" : "" });
    th.scope = "col";
    head.append(th);
  }
  const caption = make("caption", {}, fill(words.hosts, { n: rows.length.toLocaleString("en") }), " ", make("span", { className: "u", textContent: about.u }));
  caption.dataset.u = about.b;
  const table = make("table", { className: "sortable" }, caption, make("thead", {}, head), make("tbody", {}, ...rows));
  table.dataset.title = about.t;
  const scroll = make("div", { className: "scroll", tabIndex: 0 }, table);
  scroll.role = "region";
  scroll.ariaLabel = about.t;
  byId("detail-h").textContent = about.t;
  byId("detail-body").replaceChildren(...before, scroll);
  equip(byId("detail-body"));
  byId("detail").showModal();
  byId("detail-h").focus();
}
function detail(number) {
  figures ??= embeddedIn("per-host");
  const metric = figures.metrics[number];
  const ranged = metric.l !== undefined;
  const sides = figures.titles.length > 1;
  const places = placesOf(metric.v);
  // The ends of a spread come as so many of the last digit from the value.
  const end = (steps, i) => (steps[i] === null ? null : Number((metric.v[i] + steps[i] / 10 ** metric.d).toFixed(metric.d)) || metric.v[i]);
  const columns = [[words.host], ...(sides ? [[words.side]] : []), [words.value, true], ...(ranged ? [[words.lowest, true], [words.highest, true]] : []), [words.n, true]];
  const order = metric.v.map((v, i) => i).filter((i) => metric.v[i] !== null).sort((a, b) => metric.v[b] - metric.v[a]);
  present(metric, [], columns, order.map((i) => {
    const ends = ranged ? [numberCell(end(metric.l, i), places), numberCell(end(metric.h, i), places)] : [];
    const n = make("td", { className: "num", textContent: (Array.isArray(metric.n) ? metric.n[i] : metric.n) ?? "" });
    return rowOf(figures.hosts[i], sides ? figures.titles[figures.sides[i]] : null, [numberCell(metric.v[i], places), ...ends, n], metric.f);
  }));
}
function membersOf(row) {
  origins ??= embeddedIn("per-benchmark");
  return all("[data-o]", row).flatMap((link) => origins[Number(link.dataset.o)].r.map(([name]) => name));
}
function origin(number) {
  origins ??= embeddedIn("per-benchmark");
  const about = origins[number];
  const places = about.d;
  const file = (place) => make("div", {}, typeof place === "string" ? make("code", { textContent: place }) : make("a", { href: place[1] }, make("code", { textContent: place[0] })));
  const rows = about.r.map(([host, side, value, repeats, files]) => rowOf(host, side, [
    numberCell(value, places),
    make("td", { className: "q", textContent: repeats.map((v) => written(v, places)).join("; ") }),
    make("td", { className: "files" }, ...files.map(file)),
  ], about.f));
  const commands = about.c.map(([side, text]) => make("p", {}, make("bdi", { textContent: side }), ": ", make("code", { textContent: text })));
  const before = commands.length ? [make("h3", { textContent: words.commands }), make("div", { className: "commands", role: "group", tabIndex: 0, ariaLabel: words.commands }, ...commands)] : [];
  present(about, before, [[words.host], [words.side], [words.value, true], [words.repeats], [words.files]], rows);
}
byId("detail-close").addEventListener("click", () => byId("detail").close());

