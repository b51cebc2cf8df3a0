// Formulas that are wider than the page are made smaller, down to six tenths; beyond that they move sideways.
function fit() {
  for (const block of document.querySelectorAll("div.math")) {
    const formula = block.querySelector("mjx-container");
    if (!formula) continue;
    formula.style.fontSize = "";
    const scale = block.clientWidth / block.scrollWidth;
    if (scale < 1) formula.style.fontSize = `${Math.max(0.6, Math.floor(scale * 98) / 100) * 100}%`;
  }
}
// MathJax is loaded after this, and says when it is done.
addEventListener("load", () => {
  if (window.MathJax?.startup?.promise) MathJax.startup.promise.then(fit);
  addEventListener("resize", fit);
});
