"""The command line of the pages: python environment/pages --help."""

import argparse
import io
import json
import os
import shutil
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import handout
import live
import sources

HERE = Path(__file__).resolve().parent
FORWARD = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<title>Density uncertainty layers</title>
<meta http-equiv="refresh" content="0; url=html/index.html">
<p><a href="html/index.html">To the pages</a>
</html>
"""


def installed(package, ending):
    """The path of a file that a Python package brings."""
    [found] = [file for file in metadata.files(package) if str(file).endswith(ending)]
    return Path(found.locate())


def render(source, target):
    """Makes HTML of a folder of sources, and returns what Sphinx complained about."""
    from sphinx.application import Sphinx  # slow to load
    from sphinx.util.console import nocolor

    import formulas
    import tables

    nocolor()
    warnings = io.StringIO()
    version = os.environ.get("DENSITYUNCERTAINTY_VERSION", "")
    with tempfile.TemporaryDirectory() as doctrees:
        settings = {"project": "densityuncertainty", "release": version, "html_static_path": [str(source / "_static")]}
        app = Sphinx(source, HERE, target, doctrees, "html", settings, io.StringIO(), warnings)
        app.add_transform(formulas.SideBySide)
        app.add_transform(tables.Columns)
        app.add_transform(tables.Marks)
        app.build()
    return [line for line in warnings.getvalue().splitlines() if line.strip()]


def build(notebooks, made, catalogue, program=None):
    """Makes the pages in the folder html of made, and returns the complaints. Without its program (see live.write) there is no live page."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "source", Path(folder) / "html"
        has_handout = handout.possible(made / "figures")
        sources.write(notebooks, made, catalogue, source, has_handout, program is not None)
        shutil.copy(installed("sphinx-mathjax-offline", "/tex-svg.js"), source / "_static")
        complaints = [complaint.replace(f"{source}{os.sep}", "") for complaint in render(source, target)]
        if has_handout:
            complaints += handout.write(notebooks, made / "figures", target)
        if program is not None:
            live.write(program, target)
        for name in (".buildinfo", "objects.inv"):
            (target / name).unlink(missing_ok=True)
        shutil.rmtree(target / "_sources", ignore_errors=True)
        part = made / "html.part"
        shutil.rmtree(part, ignore_errors=True)
        shutil.copytree(target, part)
    shutil.rmtree(made / "html", ignore_errors=True)
    os.replace(part, made / "html")
    (made / "index.html").write_text(FORWARD, encoding="utf-8")
    return complaints


def main():
    parser = argparse.ArgumentParser(prog="pages", description="Makes pages of notebooks, figures and tables, in the folder html of OUT.")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder with what was made: notebooks, figures, tables")
    parser.add_argument("notebooks", nargs="+", type=Path, metavar="NOTEBOOK", help="the notebooks; those that were not run are shown without outputs")
    parser.add_argument("--catalogue", type=Path, help="file that reproduce list --format json wrote, for figures and tables")
    parser.add_argument("--live", type=Path, metavar="PROGRAM", help="folder with the program of the live page: live.wasm and wasm_exec.js")
    options = parser.parse_args()
    catalogue = json.loads(options.catalogue.read_text(encoding="utf-8")) if options.catalogue else {}
    complaints = build(options.notebooks, options.out, catalogue, options.live)
    for complaint in complaints:
        print(f"    FAIL pages: {complaint}", file=sys.stderr)
    return 1 if complaints else 0
