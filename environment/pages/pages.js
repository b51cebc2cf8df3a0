// Formulas fit the column, and the keyboard reaches what still moves inside of a box.
function fit() {
  for (const formula of document.querySelectorAll("mjx-container")) {
    formula.style.fontSize = "";
    const part = formula.closest("p, li, td, div").clientWidth / formula.firstElementChild.getBoundingClientRect().width;
    if (part < 1) formula.style.fontSize = `${100 * Math.max(0.6, part)}%`;
  }
  for (const box of document.querySelectorAll("[role=main] :is(.table-wrapper, div.math)")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
}
for (const event of ["load", "resize", "toggle"]) addEventListener(event, fit, true);

// On a narrow screen, formulas beside each other go below each other.
if (window.MathJax) {
  MathJax.startup = {
    ready() {
      for (const box of innerWidth < 600 ? document.querySelectorAll("div.math") : []) {
        const parts = box.textContent.replace(/^\s*\\\[|\\\]\s*$/g, "").split(/\\qquad|(?=\\;[-+]\\;)/);
        if (parts.length > 1 && !parts.some((part) => part.includes("\\begin"))) box.textContent = `\\[\\begin{gathered}${parts.join("\\\\")}\\end{gathered}\\]`;
      }
      MathJax.startup.defaultReady();
      MathJax.startup.promise.then(fit);
    },
  };
}

// On a narrow screen a tap enlarges a picture, and another one closes it.
addEventListener("click", ({ target }) => {
  if (innerWidth > 960 || !target.matches("article img") || target.naturalWidth <= target.clientWidth || target.closest("a")) return;
  const large = document.createElement("dialog");
  large.className = "large";
  large.ariaLabel = target.alt;
  large.append(target.cloneNode());
  large.addEventListener("click", () => large.close());
  large.addEventListener("close", () => large.remove());
  document.body.append(large);
  large.showModal();
});

// Screen readers tell the two sidebars apart.
addEventListener("DOMContentLoaded", () => {
  for (const [name, label] of [["sidebar", "All pages"], ["toc", "This page"]]) document.querySelector(`aside.${name}-drawer`).ariaLabel = label;
});
