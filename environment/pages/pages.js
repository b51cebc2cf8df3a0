// The keyboard reaches what moves inside of a box.
function reach() {
  for (const box of document.querySelectorAll("[role=main] :is(.table-wrapper, pre, div.math)")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
}
for (const event of ["load", "resize", "toggle"]) addEventListener(event, reach, true);
addEventListener("load", () => window.MathJax?.startup.promise.then(reach));
