// Formulas that are wider than the page are made smaller, down to a half; beyond that they move sideways.
function fitFormulas() {
  for (const formula of document.querySelectorAll("mjx-container")) {
    const box = formula.closest("div.math, p, li, td, th, h1, h2, h3");
    formula.style.fontSize = "";
    const scale = box.clientWidth / formula.querySelector("svg").getBoundingClientRect().width;
    if (scale < 1) formula.style.fontSize = `${Math.max(0.5, Math.floor(scale * 98) / 100) * 100}%`;
  }
}
// Tables that fit move with the page, others in a box. The style needs to know how wide the names in their first column are.
function fitTables() {
  for (const box of document.querySelectorAll("[role=main] .table-wrapper")) {
    const table = box.querySelector("table");
    box.classList.remove("fits"); // it would give way to the table
    box.classList.toggle("fits", table.offsetWidth <= box.parentElement.clientWidth);
    table.style.setProperty("--names", `${table.querySelector("th").offsetWidth}px`);
  }
}
// In a box the headings stay at the top of the window, or of the box where that is lower.
function keepHeadings() {
  const top = document.querySelector(".mobile-header").offsetHeight;
  for (const box of document.querySelectorAll("[role=main] .table-wrapper")) {
    const down = box.classList.contains("fits") ? top : Math.max(0, top - box.getBoundingClientRect().top);
    box.style.setProperty("--down", `${down}px`);
  }
}
// The keyboard reaches everything that moves inside of a box.
function reachBoxes() {
  for (const box of document.querySelectorAll("[role=main] :is(.table-wrapper, pre, div.math)")) {
    const moves = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
    if (moves && getComputedStyle(box).overflowX !== "visible") box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}
function adapt() {
  fitFormulas();
  fitTables();
  keepHeadings();
  reachBoxes();
}
addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  adapt();
  addEventListener("resize", adapt);
  addEventListener("scroll", keepHeadings, { passive: true });
  // A table in a fold has no size before it is opened.
  addEventListener("toggle", adapt, true);
  document.documentElement.dataset.ready = "true";
});
