// What the book's pages do in a browser; without it every page is complete.
// Fields above the record, rows that stack on a phone, formulas that fit, links into what is folded.
"use strict";

// A table that is wider than the page becomes one block a row (book.css); its cells need the heads.
function labelCells(table) {
  const heads = table.tHead && table.tHead.rows[0];
  if (!heads) return;
  const names = [...heads.cells].map((cell) => cell.textContent.trim());
  for (const row of table.tBodies[0].rows) {
    [...row.cells].forEach((cell, k) => {
      cell.dataset.label = names[k] ?? "";
    });
  }
}

function stackTables() {
  for (const table of document.querySelectorAll("article table")) {
    table.classList.remove("stacked");
    const box = table.closest(".pst-scrollable-table-container, .table-wrapper") ?? table.parentElement;
    if (!table.querySelector("td[data-label]")) continue;
    // On a phone sentences beside one another are columns of single words.
    const words = [...table.querySelectorAll("td")].some((cell) => cell.textContent.length > 30);
    const narrow = innerWidth < 620 && words && table.tHead.rows[0].cells.length > 2;
    if (narrow || table.scrollWidth > box.clientWidth + 1) {
      table.classList.add("stacked");
    }
  }
}

// A formula is one line: where the column is narrower it is set smaller.
function fitFormulas() {
  for (const box of document.querySelectorAll("article .formula")) {
    box.style.fontSize = "";
    const over = box.scrollWidth / box.clientWidth;
    if (box.clientWidth && over > 1) box.style.fontSize = `${Math.max(0.4, 0.97 / over)}em`;
  }
  for (const math of document.querySelectorAll("article math:not([display=block])")) {
    math.style.fontSize = "";
    let block = math.parentElement;
    while (block && !block.clientWidth) block = block.parentElement; // inline boxes have none
    if (!block) continue;
    const over = math.getBoundingClientRect().width / (block.clientWidth - 20);
    if (over > 1) math.style.fontSize = `${1 / over}em`;
  }
}

function fit() {
  stackTables();
  fitFormulas();
}

// A link to a claim opens it.
function openTarget() {
  const name = decodeURIComponent(location.hash.slice(1));
  const place = name && document.getElementById(name);
  if (!place) return;
  for (let at = place; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  place.scrollIntoView();
}

function filterRecord(table) {
  const rows = [...table.tBodies[0].rows];
  const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  const value = (row, head) => row.cells[heads.indexOf(head)].textContent.trim();
  const values = (row, head) => value(row, head).split("; ");
  const form = document.createElement("form");
  form.className = "record-filter";
  form.addEventListener("submit", (event) => event.preventDefault());
  const labelled = (text, field) => {
    const label = document.createElement("label");
    label.textContent = text;
    label.htmlFor = field.id = `record-${text.replace(/\W+/g, "-")}`;
    const pair = document.createElement("span");
    pair.append(label, field);
    form.append(pair);
    return field;
  };
  const words = labelled("search", document.createElement("input"));
  words.type = "search";
  const lists = ["about", "status", "words of", "evidence"].map((head) => {
    const select = labelled(head, document.createElement("select"));
    select.append(new Option("all", ""));
    const all = new Set(rows.flatMap((row) => values(row, head)));
    const sorted = [...all].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    for (const each of sorted) select.append(new Option(each, each));
    return [head, select];
  });
  const count = document.createElement("output");
  form.append(count);
  const filter = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const fits =
        wanted.every((word) => text.includes(word)) &&
        lists.every(([head, select]) => !select.value || values(row, head).includes(select.value));
      row.hidden = !fits;
      shown += fits;
    }
    count.textContent = `${shown} of ${rows.length} claims`;
  };
  form.addEventListener("input", filter);
  (table.closest(".pst-scrollable-table-container, .table-wrapper") ?? table).before(form);
  filter();
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("article table, table.claim-record").forEach(labelCells);
  const record = document.querySelector("table.claim-record");
  if (record) filterRecord(record);
  fit();
  openTarget();
  addEventListener("hashchange", openTarget);
  addEventListener("resize", fit);
  // What was folded has no size until it is open.
  document.addEventListener("toggle", fit, true);
});
