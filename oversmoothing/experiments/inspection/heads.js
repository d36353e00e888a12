"use strict";
// The layer x head map: one cell a head, from the table of heads; arrow keys move through it.
(function () {
  const { find, add } = Page, map = find("map");
  if (!map) return;
  const table = new Report.Table(find("by-head"));
  const layers = table.column("layer"), numbers = table.column("head");
  const depth = Math.max(...layers), most = Math.max(...numbers);
  let chosen = 0; // the head that the note is of
  const cells = []; // by head and layer, from 0; null where a layer has fewer heads

  const top = add(map.createTHead(), "tr");
  add(top, "th", { textContent: "head \\ layer", scope: "col" });
  for (let layer = 1; layer <= depth; layer += 1) add(top, "th", { textContent: layer, scope: "col" });
  const body = map.createTBody();
  for (let head = 0; head <= most; head += 1) {
    const line = add(body, "tr");
    add(line, "th", { textContent: head, scope: "row" });
    cells.push(Array.from({ length: depth }, (_, k) => {
      const index = layers.findIndex((layer, i) => layer === k + 1 && numbers[i] === head);
      const cell = add(line, "td", { tabIndex: -1, onclick: () => Report.choose(k + 1),
        onpointerenter: () => says(index), onfocus: () => says(index), onkeydown: (event) => moved(event, head, k) });
      return { cell, index };
    }));
  }
  cells[0][0].cell.tabIndex = 0;

  // Negative smooths of a change of HFC/LFC, positive of a margin; a share is dark where it is large.
  const SIDES = { log_change: ["--smooths", "--sharpens"], margin: ["--sharpens", "--smooths"] };

  // An effect has a colour only where its interval, if there is one, leaves 0 out.
  const ends = ["low", "high"].map((end) => table.column(`log_change_${end}`));
  const open = (name, index) => name === "log_change" && !(ends[0][index] > 0 || ends[1][index] < 0);

  function draw() {
    const name = find("of-map").value, sides = SIDES[name], values = table.column(name);
    const reach = sides ? Math.max(...values.map((x) => Math.abs(x) || 0)) : 1;
    for (const { cell, index } of cells.flat()) {
      const value = index < 0 ? NaN : values[index];
      cell.textContent = index < 0 ? "" : table.text(index, name);
      cell.style.setProperty("--colour", `var(${(sides || ["--smooths", "--smooths"])[value < 0 ? 0 : 1]})`);
      cell.style.setProperty("--share", reach > 0 && Number.isFinite(value) && !open(name, index) ? Math.min(1, Math.abs(value) / reach) : 0);
    }
  }

  function says(index) {
    if (index < 0) return;
    chosen = numbers[index];
    const parts = table.names.slice(2).filter((name) => table.text(index, name) !== "\u2013")
      .map((name) => `${table.title(name)} ${table.text(index, name)}`);
    find("said-map").textContent = `Layer ${layers[index]}, head ${numbers[index]}: ${parts.join(", ")}.`;
  }

  function moved(event, head, k) {
    if (event.key === "Enter" || event.key === " ") {
      Report.choose(k + 1);
      event.preventDefault();
    }
    const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const next = by && cells[head + by[0]]?.[k + by[1]];
    if (!next) return;
    event.preventDefault();
    for (const { cell } of cells.flat()) cell.tabIndex = -1;
    next.cell.tabIndex = 0;
    next.cell.focus();
  }

  find("of-map").addEventListener("change", draw);
  const follow = (layer) => {
    cells.flat().forEach(({ cell }, i) => cell.classList.toggle("now", (i % depth) + 1 === layer));
    if (layer) says(cells[chosen][layer - 1].index);
  };
  Report.followers.push(follow);
  draw();
  follow(Report.layer());
}());
