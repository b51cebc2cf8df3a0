"""Makes pages of the notebooks, the studies and the live page in OUT/html: python environment/pages OUT PROGRAM.

Notebooks are shown as they are in OUT/notebooks if they were run since they were changed, else
without outputs. PROGRAM is the folder with the program of the live page (see live.py).
"""

import shutil
import sys
import tempfile
from pathlib import Path

from sphinx.cmd.build import main as sphinx

import live
from conf import packages

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def gather(out, source):
    """Copies what the pages are made of into one folder: its paths are those of the repository, but for the first page and the handout."""
    for pattern in ("environment/README.md", "figures/*.md", "figures/*/*.md", "figures/pictures/*.png", "notebooks/*.ipynb"):
        for path in ROOT.glob(pattern):
            place = path.relative_to(ROOT)
            run = out / place
            (source / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(run if run.exists() and run.stat().st_mtime >= path.stat().st_mtime else path, source / place)
    for path in HERE.glob("*.md"):
        shutil.copy(path, source)


def main(out, program):
    with tempfile.TemporaryDirectory() as folder:
        source, html = Path(folder) / "source", Path(folder) / "html"
        gather(out, source)
        status = sphinx(["-q", "-W", "--keep-going", "--no-color", "-d", f"{folder}/doctrees", "-c", str(HERE), str(source), str(html)])
        live.write(program, html)
        for path in ROOT.glob("notebooks/*.ipynb"):
            shutil.copy(path, html / "notebooks")
        for package in set(sum(packages.values(), [])):
            files = [path for path in sorted((ROOT / package).glob("*.go")) if not path.stem.endswith("_test")]
            text = (html / "code" / package).with_suffix(".txt")
            text.parent.mkdir(parents=True, exist_ok=True)
            text.write_text("\n\n".join(f"// File {path.relative_to(ROOT)}\n\n{path.read_text()}" for path in files), encoding="utf-8-sig")
        shutil.rmtree(out / "html", ignore_errors=True)
        shutil.copytree(html, out / "html", ignore=shutil.ignore_patterns("_sources", "objects.inv", ".buildinfo"))
    (out / "index.html").write_text('<!DOCTYPE html><meta http-equiv="refresh" content="0; url=html/index.html"><a href="html/index.html">To the pages</a>\n', encoding="utf-8")
    return status


sys.exit(main(*map(Path, sys.argv[1:])))
