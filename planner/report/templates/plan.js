"use strict";
const plan = JSON.parse(document.getElementById("plan").textContent);
const COLORS = ["#0b63b0", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b4fa0", "#7a7a7a"];
const SYMBOLS = { validated: "circle", wide: "diamond", unvalidated: "x" };
const EVIDENCE = { validated: "validated", wide: "wide interval", unvalidated: "unvalidated" };
const CONFIG = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };
const NARROW = () => matchMedia("screen and (max-width: 760px)").matches;
const byId = new Map(plan.options.map((o) => [o.id, o]));
const accelerators = [...new Set(plan.options.map((o) => o.accelerator_name))].sort();
const color = (name) => COLORS[accelerators.indexOf(name) % COLORS.length];

/* Plotly reads a little markup in its texts; names of models and providers are never markup. */
const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const short = (value, digits = 3) =>
  value === null || value === undefined ? "-" : value === 0 ? "0"
    : Number(value.toPrecision(digits)).toLocaleString("en-US", { maximumSignificantDigits: digits });
const usd = (value) => value === null ? "-" : value === 0 ? "$0" : "$" + (value >= 1
  ? value.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 }) : value.toFixed(3));
const whole = (value) => "$" + Math.round(value).toLocaleString("en-US");
const percent = (value, digits = 0) => value === null ? "no bound" : (value * 100).toFixed(digits) + " %";
const ms = (value) => value === null ? "-" : value >= 10000 ? short(value / 1000) + " s" : short(value) + " ms";

function make(tag, text, className) {
  const node = document.createElement(tag);
  if (text !== undefined && text !== null) node.textContent = text;
  if (className) node.className = className;
  return node;
}
function table(node, heads, rows) {
  const head = make("tr");
  heads.forEach((h) => head.append(make("th", h.text ?? h, h.number ? "number" : "")));
  node.replaceChildren(make("thead"), make("tbody"));
  node.tHead.append(head);
  for (const cells of rows) {
    const line = make("tr");
    cells.forEach((cell, i) => line.append(make("td", cell?.text ?? cell,
      [heads[i]?.number ? "number" : "", cell?.className ?? ""].join(" ").trim())));
    node.tBodies[0].append(line);
  }
}

/* Filters */
const FILTERS = [
  ["accelerator_name", "Accelerator", (v) => v], ["provider", "Provider", (v) => v],
  ["weights", "Weights", (v) => v], ["evidence", "Evidence", (v) => EVIDENCE[v]],
];
const off = new Map(FILTERS.map(([key]) => [key, new Set()]));
function buildFilters() {
  const form = document.getElementById("filters");
  for (const [key, title, word] of FILTERS) {
    const set = make("fieldset");
    set.append(make("legend", title));
    for (const value of [...new Set(plan.options.map((o) => o[key]))].sort()) {
      const label = make("label"), box = make("input");
      box.type = "checkbox"; box.checked = true; box.name = key; box.value = value;
      box.addEventListener("change", () => {
        if (box.checked) off.get(key).delete(value); else off.get(key).add(value);
        drawFront();
      });
      label.append(box, make("span", word(value)));
      set.append(label);
    }
    form.append(set);
  }
  form.addEventListener("submit", (event) => event.preventDefault());
}
const left = () => plan.options.filter((o) => FILTERS.every(([key]) => !off.get(key).has(o[key])));

/* Charts */
const hover = (o) => [
  `<b>${plain(o.picks.join(", ") || o.id)}</b>`, plain(o.hardware), plain(o.bought),
  plain(`${o.engine}, ${o.weights} / ${o.kv}, ${o.layout}, speculation ${o.speculation}`),
  `${usd(o.mtok)} per Mtok output, ${usd(o.hour)}/h`,
  o.tpot95 === null ? `run ${o.run}` : `TTFT p95 ${ms(o.ttft95)}, TPOT p95 ${ms(o.tpot95)}`,
  `utilization ${percent(o.use)}, quality loss ${short(o.loss)} %, ${EVIDENCE[o.evidence]}`,
  o.flags.length ? plain(o.flags.join(", ")) : null,
].filter((line) => line !== null).join("<br>");
const AXIS = { gridcolor: "#e8ecf1", zeroline: false, linecolor: "#c5cdd6", automargin: true, ticks: "outside", tickcolor: "#c5cdd6" };
function layout(x, y, extra = {}) {
  return {
    margin: { l: 58, r: 12, t: 34, b: 48 }, paper_bgcolor: "#fff", plot_bgcolor: "#fff",
    font: { family: "system-ui, sans-serif", size: 12.5, color: "#1b2430" },
    hoverlabel: { bgcolor: "#fff", bordercolor: "#c5cdd6", align: "left", font: { color: "#1b2430" } },
    xaxis: { ...AXIS, ...x }, yaxis: { ...AXIS, ...y }, showlegend: false, ...extra,
  };
}
/* One or two decades: few ticks with plain numbers. */
function logAxis(title, values) {
  const known = values.filter((v) => v > 0);
  const low = Math.min(...known), high = Math.max(...known);
  const range = [Math.log10(low / 1.12), Math.log10(high * 1.3)];
  if (high / low < 2) return { type: "log", range, title: { text: title }, tickformat: ".3~g", nticks: 5 };
  const ticks = [];
  for (let e = Math.floor(Math.log10(low)) - 1; e <= Math.ceil(Math.log10(high)); e++)
    for (const m of high / low > 30 ? [1, 3] : high / low > 4 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 8]) ticks.push(m * 10 ** e);
  return { type: "log", range, title: { text: title }, tickvals: ticks, ticktext: ticks.map((t) => short(t)), minor: { showgrid: false } };
}
function points(options, key, legend) {
  return accelerators.map((name) => {
    const mine = options.filter((o) => o.accelerator_name === name && o[key] !== null);
    return {
      type: "scatter", mode: "markers", name: plain(name), legendgroup: name, showlegend: legend && mine.length > 0,
      x: mine.map((o) => o[key]), y: mine.map((o) => o.mtok), customdata: mine.map((o) => o.id),
      text: mine.map(hover), hovertemplate: "%{text}<extra></extra>",
      marker: {
        color: color(name), size: 8, opacity: mine.map((o) => (o.trusted ? 0.8 : 0.45)),
        symbol: mine.map((o) => SYMBOLS[o.evidence]), line: { width: 0.5, color: "#fff" },
      },
    };
  });
}
function pickMarks(options, key, labels) {
  const mine = options.filter((o) => o.picks.length && o[key] !== null);
  return {
    type: "scatter", mode: labels ? "markers+text" : "markers", x: mine.map((o) => o[key]), y: mine.map((o) => o.mtok),
    customdata: mine.map((o) => o.id), showlegend: false, cliponaxis: false,
    text: mine.map((o) => plain(o.picks.join(", "))), textposition: "top center", textfont: { size: 12 },
    hovertext: mine.map(hover), hovertemplate: "%{hovertext}<extra></extra>",
    marker: { size: 14, symbol: "circle-open", color: "#1b2430", line: { width: 2 } },
  };
}
function scatter(id, options, key, title, { log = false, legend = false, format } = {}) {
  const values = plan.options.map((o) => o[key]).filter((v) => v !== null);
  const most = Math.max(...values, 1e-9);
  const x = log && values.every((v) => v > 0) ? logAxis(title, values)
    : { title: { text: title }, range: [-0.05 * most, 1.08 * most], tickformat: format };
  const extra = legend ? { showlegend: true, legend: NARROW() ? { orientation: "h", y: -0.3 } : { y: 1 } } : {};
  const node = document.getElementById(id);
  Plotly.react(node, [...points(options, key, legend), pickMarks(options, key, legend)],
    layout(x, logAxis("USD per Mtok output", plan.options.map((o) => o.mtok)), extra), { ...CONFIG, displayModeBar: legend ? "hover" : false });
  if (!node.dataset.clicks) {
    node.dataset.clicks = "yes";
    node.on("plotly_click", (event) => showOption(event.points[0].customdata));
  }
}
function drawFront() {
  const options = left();
  document.getElementById("count").textContent =
    `${options.length} of ${plan.options.length} options; circles: validated, diamonds: wide interval, crosses: unvalidated; pale: picks may not rest on it.`;
  const online = plan.options.some((o) => o.tpot95 !== null);
  if (online) {
    scatter("front", options, "tpot95", "TPOT p95 [ms]", { log: true, legend: true });
    scatter("by-ttft", options, "ttft95", "TTFT p95 [ms]", { log: true });
  } else {
    scatter("front", options, "run_hours", "run [h]", { legend: true });
    document.getElementById("by-ttft").hidden = true;
  }
  scatter("by-loss", options, "loss", "quality loss, median [%]");
  scatter("by-use", options, "mean_use", "mean utilization", { format: ".0%" });
  drawTable(options);
}
function drawTable(options) {
  const n = (text) => ({ text, number: true });
  const offline = plan.options.some((o) => o.job !== null);
  const time = offline ? [n("Whole run"), n("Deadline used")] : [n("USD/month"), n("TTFT p95"), n("TPOT p95"), n("Mean util.")];
  table(document.getElementById("options"),
    ["Option", "Buy", "From", "Engine", "Weights / KV", "Replicas", "Spec.", n("USD/h"), n("USD/Mtok"), ...time, n("Loss"), "Evidence"],
    options.map((o) => [o.id, o.hardware, o.bought, o.engine, `${o.weights} / ${o.kv}`, o.layout, o.speculation, usd(o.hour), usd(o.mtok),
      ...(offline ? [o.job, percent(o.use)] : [whole(o.month), ms(o.ttft95), ms(o.tpot95), percent(o.mean_use)]),
      short(o.loss) + " %", EVIDENCE[o.evidence]]));
}

/* Picks */
function drawPicks() {
  const picked = plan.options.filter((o) => o.picks.length);
  const node = document.getElementById("picks");
  if (!picked.length) {
    node.append(make("p", plan.nothing, "notice"));
    plan.misses.forEach((text) => node.append(make("p", text, "small")));
    document.getElementById("lead").textContent = "Every point is a deployment that comes near, one an accelerator.";
  }
  const order = (o) => plan.picks.indexOf(o.id);
  for (const o of picked.sort((a, b) => order(a) - order(b))) {
    const card = make("button", null, "card");
    card.type = "button";
    card.append(make("h3", o.picks.join(", ")), make("p", `${usd(o.mtok)}`, "amount"), make("p", "per million output tokens", "quiet"),
      make("p", o.job === null ? `${usd(o.hour)}/h, ${whole(o.month)} a month` : o.job),
      ...(o.invoiced && o.job === null ? [make("p", `spot allowance included; ${o.invoiced}`, "quiet")] : []),
      ...o.lease.map((text) => make("p", text)), make("p", o.hardware), make("p", o.bought, "quiet"),
      make("p", `${o.engine}, ${o.weights} / ${o.kv}, ${o.layout}`),
      ...(o.job === null ? [make("p", `TTFT p95 ${ms(o.ttft95)}, TPOT p95 ${ms(o.tpot95)}`)] : []),
      make("p", `quality loss ${o.quality}; ${EVIDENCE[o.evidence]}`, "quiet"));
    card.addEventListener("click", () => { showOption(o.id); document.getElementById("option").scrollIntoView({ behavior: "smooth" }); });
    node.append(card);
  }
}

/* One option */
function buildChoice() {
  const select = document.getElementById("option");
  for (const o of plan.options) {
    const item = make("option", `${o.picks.length ? o.picks.join(", ") + ": " : ""}${o.id}, ${o.hardware}, ${usd(o.mtok)}`);
    item.value = o.id;
    select.append(item);
  }
  select.addEventListener("change", () => showOption(select.value));
}
function stacked(id, title, unit, parts) {
  const traces = parts.map(([name, value, shade]) => ({
    type: "bar", orientation: "h", name, y: [""], x: [value], marker: { color: shade },
    hovertemplate: `${name}: ${short(value)} ${unit}<extra></extra>`,
  }));
  Plotly.react(document.getElementById(id), traces, layout({}, { showticklabels: false, ticks: "" }, {
    barmode: "stack", title: { text: title, font: { size: 14 }, x: 0, xanchor: "left" }, showlegend: true,
    legend: { orientation: "h", y: -0.35, font: { size: 11.5 }, traceorder: "normal" }, margin: { l: 8, r: 12, t: 32, b: 24 },
  }), { ...CONFIG, displayModeBar: false });
}
function showOption(id) {
  const o = byId.get(id);
  if (!o) return;
  document.getElementById("option").value = id;
  const list = document.getElementById("facts");
  list.replaceChildren();
  for (const [name, value] of o.facts) list.append(make("dt", name), make("dd", value));
  const m = o.memory;
  stacked("memory", `Memory of the fullest GPU, ${short(m.device)} GiB`, "GiB", [
    ["weights", m.weights, "#0b63b0"], ["KV cache", m.kv, "#56b4e9"], ["reserve", m.reserve, "#e69f00"], ["unused", m.unused, "#d5dbe3"]]);
  const node = document.getElementById("time");
  node.hidden = o.time === null;
  if (o.time !== null) stacked("time", "Time of the median request [ms]", "ms", [
    ["to the first token", o.time.first, "#e69f00"], ["decoding at the bound", o.time.bound, "#009e73"], ["decoding above the bound", o.time.above, "#8fd3bd"]]);
  table(document.getElementById("targets"), ["Target", { text: "limit", number: true }, { text: "predicted by formula", number: true }, { text: o.simulated ? "simulated, with margin" : "with margin", number: true }, ""],
    o.targets.map((t) => [t.key, short(t.limit, 6), short(t.predicted), t.upper === null ? "no bound" : short(t.upper), { text: t.holds ? "holds" : "missed", className: t.holds ? "" : "missed" }]));
}

/* Firmness */
function buildFirmness() {
  const firm = plan.firmness;
  const shown = firm !== null && firm.picks.length > 0;
  plan.firm_notes.forEach((text) => document.getElementById("firm-notes").append(make("p", text, "notice")));
  if (!shown) { document.getElementById(plan.firm_notes.length ? "firm-figures" : "firmness").remove(); return; }
  const select = document.getElementById("firm-pick");
  firm.picks.forEach((p, i) => { const item = make("option", `${p.titles}: ${p.option}`); item.value = i; select.append(item); });
  select.addEventListener("change", () => drawFirmness(firm.picks[select.value]));
  drawFirmness(firm.picks[0]);
  table(document.getElementById("regrets"), ["Extra cost against the best choice, if", ...firm.picks.map((p) => ({ text: p.titles, number: true }))],
    firm.scenarios.map((name, i) => [name, ...firm.picks.map((p) => p.regrets[i].holds
      ? (p.regrets[i].usd === null ? "-" : `${usd(p.regrets[i].usd)}${firm.per}`) : { text: "breaks a limit", className: "missed" })]));
}
function tornado(id, title, pick, get, now, axis) {
  const bars = [...pick.bars].reverse();
  const side = (end, name, shade) => ({
    type: "bar", orientation: "h", y: bars.map((b) => plain(b.driver)), base: now, name,
    x: bars.map((b) => (get(b[end]) === null ? null : get(b[end]) - now)), marker: { color: shade },
    text: bars.map((b) => plain(b[end + "_label"])), textposition: "none",
    customdata: bars.map((b) => axis.word(get(b[end]))), hovertemplate: "%{y} %{text}: %{customdata}<extra></extra>",
  });
  Plotly.react(document.getElementById(id), [side("low", "lower", "#56b4e9"), side("high", "higher", "#d55e00")],
    layout({ tickformat: axis.format, tickprefix: axis.prefix ?? "" }, { ticks: "" }, {
      barmode: "overlay", title: { text: title, font: { size: 14 }, x: 0, xanchor: "left" }, showlegend: true,
      legend: { orientation: "h", y: -0.15 }, margin: { l: 90, r: 12, t: 40, b: 40 },
      shapes: axis.limit ? [{ type: "line", x0: axis.limit, x1: axis.limit, y0: 0, y1: 1, yref: "paper", line: { color: "#b3261e", dash: "dot" } }] : [],
    }), { ...CONFIG, displayModeBar: false });
}
function drawFirmness(pick) {
  tornado("tornado-cost", "USD per Mtok output", pick, (e) => e.mtok, pick.now.mtok, { format: ".3~g", prefix: "$", word: usd });
  const use = document.getElementById("tornado-use");
  use.hidden = pick.now.use === null;
  if (pick.now.use !== null) tornado("tornado-use", "Tightest limit, share used (dotted: all of it)", pick, (e) => e.use, pick.now.use, { format: ".0%", limit: 1, word: (v) => percent(v) });
  const words = document.getElementById("firm-words");
  words.replaceChildren(...pick.words.map((text) => make("p", text)));
}

function start() {
  document.getElementById("model").textContent = plan.title;
  plan.asked.forEach((text) => document.getElementById("asked").append(make("li", text)));
  drawPicks();
  table(document.getElementById("assumptions"), ["Subject", "What", "Statement"], plan.assumptions);
  if (!plan.options.length) {
    document.querySelectorAll(".needs-options").forEach((section) => section.remove());
    return;
  }
  buildFilters();
  buildChoice();
  drawFront();
  showOption(plan.picks[0] ?? plan.options[0].id);
  buildFirmness();
  table(document.getElementById("prices"), ["Provider", "Instance type", "Region", "Term", { text: "USD per instance-hour", number: true }, "Listed, exchange rate", "Seen", "Source", "Flag"], plan.prices);
}
start();
