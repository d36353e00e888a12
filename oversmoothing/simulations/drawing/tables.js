"use strict";
// Tables that a reader sorts: a button in each head, by mouse or keyboard.

// What a cell sorts by: its data-value, or its text; null where it has none.
Page.value = function (cell) {
  if (cell.classList.contains("none")) return null;
  return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
};

Page.sortable = function (table) {
  const body = table.tBodies[0];
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const each of heads) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = Array.from(body.rows, (row) => [Page.value(row.cells[column]), row]);
      rows.sort(([a], [b]) => {
        if (a === null || b === null) return (a === null) - (b === null); // what is missing comes last
        const order = typeof a === "number" ? a - b : a.localeCompare(b);
        return down ? -order : order;
      });
      body.append(...rows.map(([, row]) => row));
    });
  });
};
for (const table of document.querySelectorAll("table.sortable")) Page.sortable(table);
