// Formulas that are wider than the page are made smaller, down to a half; beyond that they move sideways.
function fit() {
  for (const formula of document.querySelectorAll("mjx-container")) {
    const box = formula.closest("div.math, p, li, td, th, h1, h2, h3");
    formula.style.fontSize = "";
    const scale = box.clientWidth / formula.querySelector("svg").getBoundingClientRect().width;
    if (scale < 1) formula.style.fontSize = `${Math.max(0.5, Math.floor(scale * 98) / 100) * 100}%`;
  }
}
addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  fit();
  addEventListener("resize", fit);
  document.documentElement.dataset.ready = "true";
});
