// The decision strip: inputs for mix, prices, power and numbers. Ratios and intervals come from the page; this script
// only multiplies. Inputs live in the address of the page, with names that begin with s-.
const strip = (() => {
  const place = byId("strip");
  if (!place) return null;
  const data = JSON.parse(byId("strip-data").textContent);
  const text = data.words;
  let view = data.views[0];
  let inputs = {}; // by the name in the address: the field and its initial value

  const shares = (name) => `s-mix.${name}`;
  const ofSide = (what, k) => `s-${what}.${view.sides[k].title}`;
  const plain = (value) => (value === null || value === undefined ? "" : String(Number(value.toPrecision(12))));
  function number(name) {
    const typed = inputs[name].field.value.trim();
    const value = typed === "" ? null : Number(typed);
    const valid = typed === "" || (Number.isFinite(value) && value >= 0);
    inputs[name].field.ariaInvalid = valid ? null : "true";
    inputs[name].field.title = valid ? "" : text.invalid;
    return valid ? value : null;
  }
  function field(name, label, initial, unit = "") {
    const stored = state.get(name);
    const input = make("input", { type: "text", inputMode: "decimal", autocomplete: "off", value: stored || plain(initial) });
    input.ariaLabel = label;
    input.dataset.name = name;
    inputs[name] = { field: input, initial: plain(initial) };
    input.addEventListener("input", () => {
      const value = input.value.trim();
      state.set({ [name]: value === plain(initial) ? "" : value || "-" });
      compute();
    });
    if (stored === "-") input.value = "";
    return input;
  }
  const labelled = (name, label, initial, unit = "") => make("label", {}, `${label} `, field(name, label, initial), unit ? ` ${unit}` : "");

  // --- The figures: the same rules as planner.cost, with the ratio of a mix as the harmonic mean over its classes.
  function mixed() {
    const parts = Object.keys(view.classes).map((name) => [name, (number(shares(name)) ?? 0) / 100]);
    const sum = parts.reduce((total, [, share]) => total + share, 0);
    const isInitial = parts.every(([name]) => inputs[shares(name)].field.value.trim() === inputs[shares(name)].initial);
    return { sum, isInitial, parts: parts.filter(([, share]) => share > 0).map(([name, share]) => [name, share / sum]) };
  }
  function ratioOf(side, mix) {
    if (mix.isInitial && side.given) return side.given;
    let hours = 0;
    for (const [name, share] of mix.parts) {
      if (!side.ratios[name]) return null;
      hours += share / side.ratios[name];
    }
    return hours > 0 ? [1 / hours, null, null] : null;
  }
  const needed = (servers, ratio) => Math.ceil(servers / ratio - data.rounding);
  function bill(offer, servers, terms) {
    const yearlyPrice = offer.price === null ? null : data.hours !== null ? (offer.price * data.hours_per_year) / data.hours : terms.years ? offer.price / terms.years : null;
    return {
      servers,
      total: offer.price === null ? null : servers * offer.price,
      yearlyPrice,
      energy: energyOf(offer, terms),
      yearly: yearlyPrice === null ? null : servers * (yearlyPrice + energyOf(offer, terms)),
      power: offer.watts === null ? null : (servers * offer.watts) / 1000,
      units: offer.rack_units === null ? null : servers * offer.rack_units,
    };
  }
  const energyOf = (offer, terms) => (terms.energy === null || offer.watts === null ? 0 : (offer.watts / 1000) * data.hours_per_year * terms.energy);
  function breakEven(ratio, base, offer, terms) {
    const one = bill(base, 1, terms);
    if (one.yearlyPrice === null) return base.price === null ? null : base.price * ratio;
    const yearly = one.yearly * ratio - energyOf(offer, terms);
    return data.hours !== null ? (yearly * data.hours) / data.hours_per_year : yearly * terms.years;
  }

  // --- Texts.
  const money = (value) => (value >= 99.995 || value === 0 ? whole(value) : priced(value));
  const priced = (value) => (value >= 1000 ? whole(value) : value >= 1 ? value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 }) : value.toPrecision(3));
  const whole = (value) => value.toLocaleString("en", { maximumFractionDigits: 0 });
  const times = (value) => value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  function show(cell, value, write, lo = null, hi = null) {
    cell.textContent = value === null ? "–" : write(value) + (lo !== null && hi !== null && write(lo) !== write(hi) ? ` (${write(lo)}–${write(hi)})` : "");
    if (value === null) delete cell.dataset.v;
    else cell.dataset.v = value;
  }
  function compute() {
    const mix = mixed();
    const terms = { servers: number("s-servers") ?? 0, years: number("s-years") || null, energy: number("s-energy") };
    const offers = view.sides.map((side, k) => ({ price: number(ofSide("price", k)), watts: number(ofSide("watts", k)), rack_units: number(ofSide("units", k)) }));
    if (offers.some((offer) => offer.watts === null)) terms.energy = null; // one side would be free
    const before = bill(offers[0], terms.servers, terms);
    for (const [k, side] of view.sides.entries()) {
      const row = place.querySelector(`tr[data-side="${k}"]`);
      const cell = (name) => row.querySelector(`[data-out="${name}"]`);
      const ratio = k ? ratioOf(side, mix) : [1, null, null];
      const [value, lo, hi] = ratio ?? [null, null, null];
      const own = ratio === null ? null : bill(offers[k], k ? needed(terms.servers, value) : terms.servers, terms);
      show(cell("ratio"), k ? value : null, times, lo, hi);
      show(cell("needed"), own?.servers ?? null, whole, hi ? needed(terms.servers, hi) : null, lo ? needed(terms.servers, lo) : null);
      show(cell("total"), own?.total ?? null, money);
      show(cell("yearly"), own?.yearly ?? null, money);
      show(cell("power"), own?.power ?? null, (v) => v.toPrecision(3));
      show(cell("units"), own?.units ?? null, whole);
      const even = k && ratio ? [value, lo, hi].map((r) => (r ? breakEven(r, offers[0], offers[k], terms) : null)) : [null, null, null];
      show(cell("even"), even[0] > 0 ? even[0] : null, priced, even[1], even[2]);
      const pair = before.yearly && own?.yearly != null ? [before.yearly, own.yearly] : [before.total, own?.total];
      show(cell("change"), k && pair[0] && pair[1] != null ? pair[1] / pair[0] - 1 : null, (v) => `${v < 0 ? "−" : "+"}${Math.abs(v * 100).toFixed(0)}%`);
    }
    explain(mix);
  }
  function explain(mix) {
    const notes = [];
    const works = Object.values(view.classes);
    if (works.length === 1 && works[0]) notes.push(fill(text.work, { work: works[0] }));
    if (!view.is_given && mix.isInitial && Object.keys(view.classes).length > 1) notes.push(text.equal);
    if (Math.abs(mix.sum - 1) > 1e-9 && !mix.isInitial) notes.push(mix.sum > 0 ? fill(text.sums, { sum: Number((mix.sum * 100).toPrecision(6)) }) : text.nothing);
    const hasInterval = mix.isInitial && view.sides.some((side) => side.given && side.given[1] !== null);
    if (hasInterval) notes.push(text.fixed);
    else if (!view.is_exact) notes.push(text.about);
    const note = place.querySelector(".strip-note");
    note.replaceChildren(notes.join(" "));
    if (data.command && !hasInterval && mix.parts.length) {
      const exact = mix.parts.map(([name, share]) => `${name}=${plain(share)}`).join(",");
      note.append(` ${text.again} `, make("code", { textContent: `${data.command} --mix ${exact}` }));
    }
  }

  // --- The form.
  function build() {
    inputs = {};
    const top = make("p", { className: "strip-inputs" }, labelled("s-servers", text.servers, data.servers), " ", labelled("s-years", text.years, data.years), " ", labelled("s-energy", text.energy, data.energy, data.unit.split(" ")[0]));
    const mix = make("fieldset", { className: "strip-inputs" }, make("legend", { textContent: text.mix }));
    for (const [name, title] of Object.entries(view.classes)) mix.append(labelled(shares(name), title, Number(((view.mix[name] ?? 0) * 100).toPrecision(4)), "%"), " ");
    const outputs = ["ratio", "needed", "total", "yearly", "change", "even", "power", "units"];
    const money = data.unit ? { price: data.unit, total: data.unit, even: data.unit, yearly: data.unit.split(" ")[0] } : {};
    const head = make("tr");
    for (const name of ["side", "price", "watts", "rack_units", ...outputs]) {
      const th = make("th", { textContent: text[name], className: name === "side" ? "" : "num" }, money[name] ? make("small", { textContent: ` ${money[name]}` }) : "");
      th.scope = "col";
      head.append(th);
    }
    const rows = view.sides.map((side, k) => {
      const name = make("th", {}, make("bdi", { textContent: side.title }));
      name.scope = "row";
      const row = make("tr", {}, name);
      row.dataset.side = k;
      for (const [what, label] of [["price", text.price], ["watts", text.watts], ["units", text.rack_units]]) {
        const initial = what === "units" ? side.rack_units : side[what];
        row.append(make("td", { className: "num" }, field(ofSide(what, k), fill(text.of, { name: label, side: side.title }), initial)));
      }
      for (const out of outputs) {
        const cell = make("td", { className: "num" });
        cell.dataset.out = out;
        row.append(cell);
      }
      return row;
    });
    const reset = make("button", { type: "button", textContent: text.reset });
    reset.addEventListener("click", () => {
      state.set(Object.fromEntries(Object.keys(inputs).map((name) => [name, ""])));
      for (const { field, initial } of Object.values(inputs)) field.value = initial;
      compute();
    });
    const scroll = make("div", { className: "scroll", tabIndex: 0 }, make("table", {}, make("caption", { className: "sr", textContent: text.title }), make("thead", {}, head), make("tbody", {}, ...rows)));
    scroll.role = "group";
    scroll.ariaLabel = text.title;
    const note = make("p", { className: "note strip-note" });
    note.ariaLive = "polite";
    place.querySelector(".strip-body").replaceChildren(top, ...(Object.keys(view.classes).length > 1 ? [mix] : [hiddenMix(mix)]), scroll, make("p", {}, reset), note);
    compute();
  }
  function hiddenMix(mix) { mix.hidden = true; return mix; }
  state.onchange(build);
  place.hidden = false;
  build();
  return { turn(number) { view = data.views[number] ?? view; build(); } };
})();

// --- The page is complete: what the address says is applied to it.
equip(document);
restore();
byId(state.section)?.scrollIntoView();
state.onchange(restore);
addEventListener("hashchange", follow);
