// Formulas that are wider than the page are made smaller, down to a half; beyond that they move sideways.
function fit() {
  for (const block of document.querySelectorAll("div.math")) {
    const formula = block.querySelector("mjx-container");
    if (!formula) continue;
    formula.style.fontSize = "";
    const scale = block.clientWidth / block.scrollWidth;
    if (scale < 1) formula.style.fontSize = `${Math.max(0.5, Math.floor(scale * 98) / 100) * 100}%`;
  }
}
addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  fit();
  addEventListener("resize", fit);
  document.documentElement.dataset.ready = "true";
});
