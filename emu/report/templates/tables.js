"use strict";
// Tables that sort by the column whose heading is clicked: by `data-value` where a cell has one, else by its text.
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const value = (row, at) => row.cells[at].dataset.value ?? row.cells[at].textContent.trim();
  const compare = (a, b) => {
    const [x, y] = [Number(a), Number(b)];
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y;
  };
  headings.forEach((heading, at) => heading.firstElementChild.addEventListener("click", () => {
    const first = heading.classList.contains("num") ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const order = heading.getAttribute("aria-sort") === first ? other : first;
    for (const each of headings) each.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", order);
    const rows = [...body.rows].sort((a, b) => compare(value(a, at), value(b, at)));
    body.append(...(order === "ascending" ? rows : rows.reverse()));
  }));
}
