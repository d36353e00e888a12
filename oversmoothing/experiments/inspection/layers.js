"use strict";
// One layer at a time: its values, the charts against depth, and what else follows the slider. All
// numbers are those of the page's own tables.
const Report = { followers: [] };

// A table by its columns' names: of a row (in the order of the page as written) a cell's text and value.
Report.Table = class {
  constructor(table) {
    this.heads = Array.from(table.tHead.rows[0].cells);
    this.titles = this.heads.map((head) => head.textContent);
    this.names = this.heads.map((head) => head.dataset.name);
    this.rows = Array.from(table.tBodies[0].rows);
  }

  title(name) { return this.titles[this.names.indexOf(name)]; }

  cell(row, name) { return this.rows[row].cells[this.names.indexOf(name)]; }

  text(row, name) { return this.cell(row, name).textContent; }

  column(name) { return this.rows.map((_, row) => Page.value(this.cell(row, name)) ?? NaN); }
};

(function () {
  const { find, add } = Page;
  for (const each of document.querySelectorAll(".scripted")) each.hidden = false;
  const whole = new Report.Table(find("by-layer-whole")), narrow = new Report.Table(find("by-layer"));
  const bands = Page.data("bands-data"), slider = find("layer"), charts = [];
  const log = (values) => values.map((x) => (x === null ? NaN : Math.log10(x)));

  function says(chart, layer) {
    const parts = chart.names.map((name) => [whole.title(name), whole.text(layer, name)])
      .filter(([, text]) => text !== "\u2013").map(([title, text]) => `${title} ${text}`);
    find(`said-${chart.key}`).textContent = `Layer ${layer}: ${parts.join(", ") || "no value"}.`;
  }

  for (const svg of document.querySelectorAll("svg.chart")) {
    const { key, lines, colours } = svg.dataset, names = lines.split(" ");
    const series = colours ? [] : ["first", "second", "third"].slice(0, names.length);
    const chart = new Page.Chart(svg, series, 8);
    Object.assign(chart, { key, names });
    const values = names.map((name) => whole.column(name));
    if (colours) {
      const ends = values[0].map((_, layer) => [1, -1].map((sign) =>
        values.reduce((sum, part) => sum + Math.max(0, sign * (part[layer] || 0)), 0)));
      const scale = Page.scale(-Math.max(...ends.map(([, down]) => down)), Math.max(...ends.map(([up]) => up)));
      chart.draw([values[0].map(() => NaN)], scale.low, scale.high, scale.ticks);
      const styles = colours.trim().split(" ").map((colour) => `fill: var(--${colour})`);
      chart.stack(values.map((part, k) => [styles[k], part]));
      Page.make("line", { class: "zero", x1: 34, x2: 294, y1: chart.y(0), y2: chart.y(0) }, chart.bars);
    } else {
      const as = key === "ratio" ? log : (list) => list.map((x) => x ?? NaN);
      const drawn = values.map(as), around = names.map((name) => (bands[name] || []).map(as));
      const finite = [...drawn, ...around.flat()].flat().filter(Number.isFinite);
      const low = Math.min(...finite), high = Math.max(...finite);
      const scale = key === "ratio" ? Page.logScale(low, high) : Page.scale(low, high);
      chart.draw(drawn, scale.low, scale.high, scale.ticks, around);
    }
    chart.text(4, 124, "layer", "start");
    chart.follow((layer) => says(chart, layer ?? Number(slider.value)), (layer) => Report.choose(layer));
    charts.push(chart);
  }

  function show(layer) {
    const named = layer ? `layer ${layer}` : "input";
    find("layer-value").textContent = layer;
    slider.setAttribute("aria-valuetext", `${named}: ${["hfc_lfc", "cos_mean", "effective_rank"]
      .map((name) => `${whole.title(name)} ${whole.text(layer, name)}`).join(", ")}`);
    const list = find("values");
    list.replaceChildren();
    for (const name of whole.names) {
      if (name === "layer" || whole.text(layer, name) === "\u2013") continue;
      const pair = add(list, "div");
      pair.dataset.name = name;
      add(pair, "dt", { textContent: whole.title(name) });
      add(pair, "dd", { textContent: whole.text(layer, name) });
    }
    for (const chart of charts) {
      chart.at(layer);
      says(chart, layer);
    }
    for (const { rows } of [whole, narrow]) rows.forEach((row, k) => row.classList.toggle("now", k === layer));
    for (const follow of Report.followers) follow(layer);
  }

  Report.choose = (layer) => {
    slider.value = layer;
    show(layer);
  };
  Report.layer = () => Number(slider.value);
  slider.addEventListener("input", () => show(slider.valueAsNumber));
  show(slider.valueAsNumber);
}());
