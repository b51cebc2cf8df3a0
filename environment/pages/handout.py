"""The method on one page, to be printed: its formulas are those of the notebooks, its picture is Figure 1."""

import html
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

import jinja2

import browser
from sources import description, text_of

HERE = Path(__file__).resolve().parent
FORMULA = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)


FIGURE = "figure1"


class Missing(Exception):
    """Something that the handout shows is not there."""


def possible(figures):
    """Whether the picture that the handout shows was made."""
    return (figures / f"{FIGURE}.svg").exists()


def formula_of(notebooks):
    """A function that returns the first displayed formula of the notebooks in which a text stands."""
    formulas = []
    for path in notebooks:
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "markdown":
                formulas += FORMULA.findall(text_of(cell["source"]))

    def formula(text):
        for found in formulas:
            if text in found:
                # The last sign belongs to the sentence that the formula stands in.
                return f"$${found.strip().rstrip('.,').strip()}$$"
        raise Missing(f"no notebook has a formula with {text!r}")

    return formula


def page(notebooks, figures):
    """The handout as HTML, which loads MathJax from _static."""
    from nbconvert.filters import markdown2html  # slow to load

    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE), undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    path = figures / f"{FIGURE}.svg"
    drawing = path.read_text(encoding="utf-8")
    _, citation = description(path)
    values = {"formula": formula_of(notebooks), "figure": drawing[drawing.index("<svg") :], "citation": html.escape(citation)}
    text = environment.get_template("handout.md").render(values)
    title = re.search(r"^# (.+)$", text, re.MULTILINE)[1]
    return environment.get_template("handout.html").render(title=html.escape(title), body=markdown2html(text))


def print_pdf(path, target):
    """Prints a page with the browser, where there is one, and says whether it did."""
    program = browser.find()
    if program is None:
        return False
    with tempfile.TemporaryDirectory() as profile:
        command = [program, "--headless", *browser.flags(), f"--user-data-dir={profile}", "--no-pdf-header-footer"]
        # The time is that of the page's clock, which runs ahead while nothing happens.
        command += ["--virtual-time-budget=20000", f"--print-to-pdf={target}", path.as_uri()]
        try:
            done = subprocess.run(command, check=False, capture_output=True, timeout=120)
        except subprocess.TimeoutExpired:
            return False
    return done.returncode == 0 and target.exists()


def write(notebooks, figures, folder):
    """Writes handout.html, and handout.pdf where there is a browser, into a folder of pages. Returns what is missing."""
    path = folder / "handout.html"
    try:
        text = page(notebooks, figures)
    except Missing as missing:
        return [f"handout: {missing}"]
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)
    print_pdf(path, folder / "handout.pdf")
    return []
