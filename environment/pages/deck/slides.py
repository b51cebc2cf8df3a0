"""Makes cells of the slides' texts in an executed notebook, for nbconvert: python slides.py NOTEBOOK WITH_TEXTS.

A text is the entry "slide" of a cell's metadata, a list of lines. A line --- begins another slide. The cell's own picture
goes on the last one.
"""

import sys

import nbformat

notebook, cells = nbformat.read(sys.argv[1], as_version=4), []
for cell in notebook.cells:
    text = "\n".join(cell.metadata.get("slide", []))
    for slide in text.split("\n---\n") if text else []:
        title, _, rest = slide.partition("\n")
        cells += [nbformat.v4.new_markdown_cell(title, metadata={"slideshow": {"slide_type": "slide"}})]
        if rest.strip():
            cells += [nbformat.v4.new_markdown_cell(rest, metadata={"slideshow": {"slide_type": "-"}})]
    cells.append(cell)
notebook.cells = cells
nbformat.write(notebook, sys.argv[2])
