// Formulas that are wider than the page are made smaller, down to a half; beyond that they move sideways.
function fit() {
  for (const formula of document.querySelectorAll("mjx-container")) {
    const box = formula.closest("div.math, p, li, td, th, h1, h2, h3");
    formula.style.fontSize = "";
    const scale = box.clientWidth / formula.querySelector("svg").getBoundingClientRect().width;
    if (scale < 1) formula.style.fontSize = `${Math.max(0.5, Math.floor(scale * 98) / 100) * 100}%`;
  }
}
// Tables that fit move with the page. Others move in a box, which the keyboard reaches; how wide their names are, the style needs to know.
function fitTables() {
  for (const box of document.querySelectorAll("[role=main] .table-wrapper")) {
    const table = box.querySelector("table");
    box.classList.remove("fits"); // it would give way to the table
    const fits = table.offsetWidth <= box.parentElement.clientWidth;
    box.classList.toggle("fits", fits);
    for (const [name, value] of [["tabindex", "0"], ["role", "region"], ["aria-label", "Table"]]) {
      if (fits) box.removeAttribute(name);
      else box.setAttribute(name, value);
    }
    if (fits) box.style.removeProperty("--down");
    table.style.setProperty("--names", `${table.querySelector("th").offsetWidth}px`);
  }
}
function keepHeadings() {
  const top = document.querySelector(".mobile-header").offsetHeight;
  for (const box of document.querySelectorAll(".table-wrapper[role=region]")) {
    box.style.setProperty("--down", `${Math.max(0, top - box.getBoundingClientRect().top)}px`);
  }
}
addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  for (const adapt of [fit, fitTables, keepHeadings]) {
    adapt();
    addEventListener("resize", adapt);
  }
  addEventListener("scroll", keepHeadings, { passive: true });
  document.documentElement.dataset.ready = "true";
});
