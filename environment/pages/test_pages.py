"""Tests of the pages: python environment/pages/test_pages.py.

How they look is for the tests in a browser.
"""

import base64
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import cli
import formulas
import handout
import sources
import tables

DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {0}"><desc>What it shows. More &lt; less.\nmade of 3 runs</desc></svg>'
TABLE = """**Which is better?**

Numbers of two methods. More.

| Method | NLL |
| --- | --- |
| **small data** |  |
| a | **1.5 ▲** |
| b | 2 |

▲ better than b. ▽ worse.

Not run: c.

<details><summary>How this was measured</summary>

On a machine.

Twice.

</details>

made of 4 runs
"""
CATALOGUE = {
    "figures": [{"name": "gap", "doc": "the gap"}, {"name": "uci-nll", "doc": "on the table's page"}, {"name": "not made", "doc": "x"}],
    "tables": [{"name": "uci-nll", "doc": "likelihood"}, {"name": "cifar10-wrn", "doc": "wide networks"}, {"name": "cifar-gpu-ood", "doc": "detection"}],
    "sets": [{"name": "uci", "doc": "x"}, {"name": "cifar10-wrn", "doc": "x"}, {"name": "gpu", "doc": "x"}],
}
WASM = b"\0asm"
EMPTY = "**{}?**\n\nNumbers.\n\n| Method | NLL |\n| --- | --- |\n\nNot run: all of it.\n\ndensityuncertainty v1, 0 runs\n"


def markdown(text):
    return {"cell_type": "markdown", "id": "m", "metadata": {}, "source": text}


def code(text, *outputs):
    return {"cell_type": "code", "id": "c", "metadata": {}, "source": text, "execution_count": 1, "outputs": list(outputs)}


def shown(kind, text):
    return {"output_type": "display_data", "metadata": {}, "data": {kind: text}}


def image(size):
    return f'<img alt="x" src="data:image/svg+xml;base64,{base64.b64encode(DRAWING.format(size).encode()).decode()}">'


def notebook(*cells):
    metadata = {"kernelspec": {"name": "gonb", "display_name": "Go", "language": "go"}, "language_info": {"name": "go", "pygments_lexer": "go"}}
    return {"cells": [{**cell, "id": f"c{number}"} for number, cell in enumerate(cells)], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


FIRST = notebook(
    markdown("# The first: a start\n\n**Claim.** *Noise follows\nthe energy* $E$. More.\n\nThen the [second](02_b.ipynb)."),
    code('import "fmt"'),
    markdown("## 1. A part\n\n$$a = \\frac{1}{2} \\qquad b$$\n"),
    code(
        '%%\nfmt.Println("x")',
        {"output_type": "stream", "name": "stdout", "text": "printed\n"},
        shown("text/html", image(10) + image(20)),
        shown("text/markdown", "**Numbers $x$?**\n\n| a | b |\n| --- | --- |\n| 1 | 2 |"),
    ),
)
SECOND = notebook(markdown("# The second\n\nA line. And more."), code("%%\nlater()"))


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.made = Path(folder.name) / "out"
        for name in ("notebooks", "figures", "tables"):
            (cls.made / name).mkdir(parents=True)
        (cls.made / "figures" / "gap.svg").write_text(DRAWING.format(5))
        (cls.made / "tables" / "uci-nll.md").write_text(TABLE)
        (cls.made / "figures" / "uci-nll.svg").write_text(DRAWING.format(6))
        (cls.made / "tables" / "cifar10-wrn.md").write_text(EMPTY.format("Are wide networks"))
        (cls.made / "tables" / "cifar-gpu-ood.md").write_text(EMPTY.format("Is it detected"))
        paths = [Path(folder.name) / name for name in ("01_a.ipynb", "02_b.ipynb")]
        for path, content in zip(paths, (FIRST, SECOND)):
            path.write_text(json.dumps(content))
        (cls.made / "notebooks" / "01_a.ipynb").write_text(json.dumps(FIRST))
        # Run before it was changed.
        stale = cls.made / "notebooks" / "02_b.ipynb"
        stale.write_text(json.dumps(notebook(markdown("# As it was"))))
        os.utime(stale, (1, 1))
        program = Path(folder.name) / "program"
        program.mkdir()
        (program / "live.wasm").write_bytes(WASM)
        (program / "wasm_exec.js").write_text("// runs it\n")
        cls.paths = paths
        cls.complaints = cli.build(paths, cls.made, CATALOGUE, program)

    def page(self, name):
        return (self.made / "html" / f"{name}.html").read_text()

    def test_no_complaints(self):
        self.assertEqual(self.complaints, [])

    def test_every_page(self):
        names = {path.stem for path in (self.made / "html").glob("*.html")}
        self.assertEqual(names, {"index", "search", "live", "01_a", "02_b", "figure-gap", "table-uci-nll"})

    def test_first_page(self):
        page = self.page("index")
        for text in ("The first: a start", "Noise follows the energy.", "The second", "A line.", "The gap", "What it shows.", "Which is better?", "Numbers of two methods."):
            self.assertIn(text, page)
        for address in ("live.html", "01_a.html", "02_b.html", "figure-gap.html", "table-uci-nll.html"):
            self.assertIn(f'href="{address}"', page)
        self.assertRegex(page, r'src="_images/01_a-2\.svg"')  # the larger of the two

    def test_the_order_of_the_first_page(self):
        page = self.page("index").partition("<article")[2]
        headings = [re.sub(r"<.*", "", text) for text in re.findall(r"<h2>(.*)</h2>", page)]
        self.assertEqual(headings, ["What came out", "Notebooks", "UCI regression", "More figures and tables", "Not run"])
        picture = re.search(r'<img alt="[^"]{20,}" src="(_images/[^"]+)"', page)
        self.assertLess(page.index("What came out"), picture.start())
        self.assertLess(picture.end(), page.index("Notebooks"))

    def test_tables_for_which_nothing_was_run(self):
        _, _, page = self.page("index").partition("Not run<")
        for title, name in (("Are wide networks", "cifar10-wrn"), ("Is it detected", "gpu")):
            self.assertRegex(page, rf"{title}\?: <code.*run.*{name}.*</code>")
        self.assertNotIn("Which is better?", page)

    def test_live_page_has_its_program(self):
        """The program and what runs it are text in a script, which a page that is a file can load."""
        script = (self.made / "html" / "_static" / "live" / "program-data.js").read_text()
        data = json.loads(re.fullmatch(r"const PROGRAM = (.*);\n", script)[1])
        self.assertEqual(gzip.decompress(base64.b64decode(data["wasm"])), WASM)
        self.assertRegex(data["worker"], r"(?s)^// runs it\n.*onmessage = ")

    def test_links_between_notebooks(self):
        self.assertRegex(self.page("01_a"), r'href="02_b\.html"[^>]*>(<span[^>]*>)?second')

    def test_previous_next_and_back(self):
        page = self.page("02_b")
        for address in ("01_a.html", "figure-gap.html", "index.html"):
            self.assertIn(f'href="{address}"', page)
        self.assertIn("<title>The second - Density uncertainty layers</title>", page)

    def test_what_cells_show(self):
        page = self.page("01_a")
        self.assertIn("printed", page)
        self.assertIn("<td", page)
        self.assertIn(r"\(x\)", page)
        self.assertIn("Show the imports", page)
        self.assertIn('class="formulas', page)

    def test_a_notebook_that_was_not_run(self):
        self.assertIn("was not run", self.page("02_b"))
        self.assertNotIn("As it was", self.page("02_b"))
        self.assertNotIn("was not run", self.page("01_a"))

    def test_what_a_table_and_a_figure_were_made_of(self):
        self.assertIn("made of 4 runs", self.page("table-uci-nll"))
        self.assertIn("<table", self.page("table-uci-nll"))
        self.assertIn("made of 3 runs", self.page("figure-gap"))
        self.assertIn("More &lt; less.", self.page("figure-gap"))

    def test_the_order_of_a_table_page(self):
        page = self.page("table-uci-nll")
        texts = ("<h1>Which is better?", 'class="table-page', "Numbers of two methods.", '<img alt="What it shows.', "<table", "than b.", "Not run: c.", "<details", "On a machine.", "Twice.", "made of 4 runs")
        places = [page.index(text) for text in texts]
        self.assertEqual(places, sorted(places))

    def test_groups_and_marks_of_a_table(self):
        page = self.page("table-uci-nll")
        self.assertRegex(page, r'<td class="group" colspan="2">(<p>)?<strong>small data</strong>')
        self.assertRegex(page, r'<strong>1\.5 <span class="better" role="img" aria-label="better">▲</span></strong>')
        self.assertRegex(page, r'<span class="better"[^>]*>▲</span> better than b\. <span class="worse"')

    def test_any_static_host(self):
        """Every file that a page needs lies beside it, under a relative address."""
        folder = self.made / "html"
        for path in folder.glob("*.html"):
            page = path.read_text()
            needed = re.findall(r'<(?:script|img|link|source)\b[^>]*?(?:src|href)="([^"#?]*)', page)
            links = [link for link in re.findall(r'<a\b[^>]*?href="([^"#?]*)', page) if link and not link.startswith("https://")]
            self.assertGreater(len(needed), 5)
            for address in filter(lambda address: address and not address.startswith("data:"), needed + links):
                with self.subTest(page=path.name, address=address):
                    self.assertNotRegex(address, r"^([a-z]+:|/)")
                    self.assertTrue((folder / address).is_file())
        self.assertIn('href="html/index.html"', (self.made / "index.html").read_text())

    def test_a_dead_link(self):
        broken = notebook(markdown("# Broken\n\n[nowhere](99_none.ipynb)"))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "01_a.ipynb"
            path.write_text(json.dumps(broken))
            done = subprocess.run([sys.executable, Path(__file__).parent, folder, path], check=False, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"^ *FAIL pages: 01_a\.ipynb.*99_none\.ipynb")
            self.assertTrue((Path(folder) / "html" / "01_a.html").exists())


class Handout(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = self.folder / "a.ipynb"
        (self.folder / "figure1.svg").write_text("<?xml version='1.0'?>" + DRAWING.format(5))

    def test_formulas_are_those_of_the_notebooks(self):
        text = "$$\\frac{2}{\\beta N} .$$\n\n$$f^j(h) = w^j \\cdot h + \\epsilon^j \\sqrt{E},$$ $$E_\\ell(h) = 1$$ and $$- \\log p_\\ell(h_{\\ell,i})$$"
        self.path.write_text(json.dumps(notebook(markdown(text))))
        self.assertTrue(handout.possible(self.folder))
        page = handout.page([self.path], self.folder)
        self.assertEqual(page.partition("<body>")[2].count("$$"), 8)
        for formula in (r"$$\frac{2}{\beta N}$$", r"\sqrt{E}$$", r"$$E_\ell(h) = 1$$", "made of 3 runs", '<svg xmlns="http://www.w3.org/2000/svg"'):
            self.assertIn(formula, page)

    def test_a_formula_that_is_gone(self):
        self.path.write_text(json.dumps(notebook(markdown("$$a$$"))))
        [complaint] = handout.write([self.path], self.folder, self.folder)
        self.assertIn("no notebook has a formula with", complaint)
        self.assertFalse((self.folder / "handout.html").exists())

    def test_its_own_notebooks(self):
        """The handout finds its formulas in the notebooks as they are."""
        notebooks = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
        self.assertEqual(handout.page(notebooks, self.folder).partition("<body>")[2].count("$$"), 8)


class Slides(unittest.TestCase):
    def test_marks(self):
        """In a notebook with slides each cell is marked: nbconvert shows one that is not."""
        for path in sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb")):
            marked = ["slideshow" in cell["metadata"] for cell in json.loads(path.read_text())["cells"]]
            self.assertIn(set(marked), ({True}, {False}), path.name)


class Parts(unittest.TestCase):
    def test_parts(self):
        for tex, want in (
            (r"a \qquad b", ["a", "-b"]),
            (r"a \quad\text{or}\quad b", ["a", r"-\text{or}", "-b"]),
            (r"\text{a \qquad b}", [r"\text{a \qquad b}"]),
            (r"\begin{aligned} a \qquad b \end{aligned}", [r"\begin{aligned} a \qquad b \end{aligned}"]),
            (r"\left( a \qquad b \right] \qquad \leftarrow", [r"\left( a \qquad b \right]", r"-\leftarrow"]),
            (r"\{ a \qquad b \}", [r"\{ a", r"-b \}"]),
            (r"a \qquads", [r"a \qquads"]),
            ("a = b", ["a = b"]),
            ("a" * 40 + "= b \\le \\sum_{i = 1} c", ["a" * 40, "{} = b", "{} \\le \\sum_{i = 1} c"]),
            ("a" * 40 + ":= b =: c", ["a" * 40, "{} := b", "{} =: c"]),
            ("a" * 40 + r" \qquad b = c", ["a" * 40, "-b = c"]),
            ("", []),
        ):
            with self.subTest(tex):
                self.assertEqual([("-" if space else "") + part for part, space in formulas.parts(tex)], want)

    def test_width(self):
        for tex, want in (("a + b", 3), (r"\frac{a}{b}", 3), (r"\alpha_i^2", 3), (r"\, x", 1), (r"\operatorname{Var}", 4), ("", 0)):
            with self.subTest(tex):
                self.assertEqual(formulas.width(tex), want)


class Columns(unittest.TestCase):
    """The classes of cells."""

    def marked(self, markdown):
        from docutils.core import publish_doctree
        from docutils import nodes
        from myst_parser.docutils_ import Parser

        document = publish_doctree(markdown, parser=Parser(), settings_overrides={"report_level": 5})
        tables.Columns(document).apply()
        [table] = document.findall(nodes.table)
        return table["classes"], [[" ".join(entry["classes"]) for entry in row.findall(nodes.entry)] for row in table.findall(nodes.row)]

    def test_columns(self):
        long = "word " * 13
        for rows, own_column, want in (
            (["Data | MFVI | Density Uncertainty | Density Uncertainty (detached)", "a | 1 | **2** | 3"], True, [["", "", "own", ""]] * 2),
            (["Method | NLL", "MFVI | 1", "Density Uncertainty | 2"], False, [["", ""], ["", ""], ["own", "own"]]),
            (["Claim | Evidence", f"a | {long}", f"{long} | b"], False, [["", ""], ["", "long"], ["long", ""]]),
            (["Data | NLL", "**Group** | ", "a | **1**", "**b** | 1"], False, [["", ""], ["group"], ["", ""], ["", ""]]),
        ):
            with self.subTest(rows):
                columns = rows[0].count("|") + 1
                classes, found = self.marked("\n".join(f"| {row} |" for row in [rows[0], " | ".join(["---"] * columns), *rows[1:]]))
                self.assertEqual(found, want)
                self.assertEqual("own-column" in classes, own_column)


class Sources(unittest.TestCase):
    def test_table_of(self):
        found = sources.table_of(TABLE.rpartition("\n\n")[0])
        self.assertEqual((found.title, found.caption, found.said, found.measured), ("Which is better?", "Numbers of two methods. More.", ["▲ better than b. ▽ worse.", "Not run: c."], ["On a machine.", "Twice."]))
        self.assertTrue(found.rows.startswith("| Method | NLL |\n") and found.has_rows())
        bare = sources.table_of("| a |\n| --- |")
        self.assertEqual((bare.title, bare.caption, bare.said, bare.measured, bare.has_rows()), ("", "", [], [], False))
        self.assertIsNone(sources.table_of("**No** table."))

    def test_title_and_line(self):
        for text, want in (
            ("# T\n\n**Claim.** *One `x` thing*, and more.", ("T", "One `x` thing.")),
            ("# T: of\n\n**Claim.** *Is it?* Yes.", ("T: of", "Is it?")),
            ("# T\n\nNo claim here, 3.5 of it. Then.", ("T", "No claim here, 3.5 of it.")),
            ("No heading. At all", ("name", "No heading.")),
            ("", ("name", "")),
        ):
            with self.subTest(text):
                self.assertEqual(sources.title_and_line(notebook(markdown(text)), "name"), want)
        self.assertEqual(sources.title_and_line(notebook(), "name"), ("name", ""))

    def test_first_clause(self):
        for caption, want in (
            ("Numbers of two methods. More.", "Numbers of two methods."),
            ("Numbers of two methods: mean, 3.5 of it. More.", "Numbers of two methods."),
            ("UCI: means of them all. More.", "UCI: means of them all."),
            ("No end", "No end."),
            ("Does it matter at all? Numbers: means.", "Does it matter at all?"),
        ):
            with self.subTest(caption):
                self.assertEqual(sources.first_clause(caption), want)

    def test_set_of(self):
        sets = ["uci", "uci-energy", "cifar10-wrn", "cifar100-wrn", "cifar-released", "gpu", "grid", "processor", "processor-grid", "ood-svhn"]
        for table, want in (
            ("uci-nll", "uci"),
            ("uci-energy", "uci-energy"),
            ("cifar100-wrn", "cifar100-wrn"),
            ("cifar100-released", "cifar-released"),
            ("cifar-gpu-differences", "gpu"),
            ("cifar-grid", "grid"),
            ("cifar-processor-grid", "processor-grid"),
            ("cifar-wrn", None),  # two have these words
            ("claims", None),
        ):
            with self.subTest(table):
                self.assertEqual(sources.set_of(table, sets), want)

    def test_group(self):
        for name, want in (("gap-ratio", "Figure 1"), ("uci-nll", "UCI"), ("rank1-ablation", "Images"), ("claims", "Claims"), ("new", "More")):
            with self.subTest(name):
                self.assertTrue(sources.group(name).startswith(want))

    def test_findings(self):
        """Its pictures are there."""
        with tempfile.TemporaryDirectory() as folder:
            pictures = Path(folder) / "_static" / "pictures"
            pictures.mkdir(parents=True)
            text = sources.findings(Path(folder))
            addresses = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
            self.assertTrue(addresses)
            self.assertEqual([address for address in addresses if not (Path(folder) / address).exists()], [])


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")  # of deprecations among other packages
