// Fields above the table of the record: free words, and one list each for paper, wording and
// status. Without this script the table stands whole.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const table = document.querySelector("table.claim-record");
  if (!table) return;
  const rows = [...table.tBodies[0].rows];
  const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  // Of the wording only what stands before its source, so that the list is short.
  const value = (row, head) => {
    const text = row.cells[heads.indexOf(head)].textContent.trim();
    return head === "wording" ? text.split(" (")[0] : text;
  };
  const form = document.createElement("form");
  form.className = "record-filter";
  form.addEventListener("submit", (event) => event.preventDefault());
  const labelled = (text, field) => {
    const label = document.createElement("label");
    label.textContent = text;
    label.htmlFor = field.id = `record-${text}`;
    const pair = document.createElement("span");
    pair.append(label, field);
    form.append(pair);
    return field;
  };
  const words = labelled("words", document.createElement("input"));
  words.type = "search";
  const lists = ["paper", "wording", "status"].map((head) => {
    const select = labelled(head, document.createElement("select"));
    select.append(new Option("all", ""));
    for (const each of [...new Set(rows.map((row) => value(row, head)))].sort()) {
      select.append(new Option(each, each));
    }
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
        lists.every(([head, select]) => !select.value || value(row, head) === select.value);
      row.hidden = !fits;
      shown += fits;
    }
    count.textContent = `${shown} of ${rows.length} statements`;
  };
  form.addEventListener("input", filter);
  (table.closest(".pst-scrollable-table-container, .table-wrapper") ?? table).before(form);
  filter();
});
