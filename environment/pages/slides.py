"""Slides of an executed notebook: python environment/pages/slides.py --help.

A slide shows the heading of its section, and of long paragraphs their beginning;
the speaker's notes (key S) have all of the text. Cells with imports are left out.
"""

import argparse
import html
import json
import os
import re
import shutil
import sys
from pathlib import Path

import nbformat

import cli
from sources import text_of

HERE = Path(__file__).resolve().parent
WIDTH, HEIGHT = 1280, 720
LINE = 90  # letters in a line of text
ROOM = 14  # lines of text on a slide
ROWS = 16  # lines of a table on a slide
SHORT = 45  # words of a paragraph that is shown in full
BREAK = re.compile(r"(?<=[.:?!])\s+(?=[A-Z*`$])")


def blocks(text):
    """The paragraphs, formulas, lists, tables and listings of a Markdown text."""
    found, part, fence = [], [], ""
    for line in text.split("\n"):
        mark = next((mark for mark in ("```", "$$") if line.strip().startswith(mark)), "")
        if not line.strip() and not fence:
            found.append("\n".join(part))
            part = []
            continue
        part.append(line)
        if fence:
            fence = "" if line.strip().endswith(fence) else fence
        elif mark and not (len(line.strip()) > len(mark) and line.strip().endswith(mark)):
            fence = mark
    found.append("\n".join(part))
    return [block for block in found if block.strip()]


def balanced(text):
    """Whether emphasis, formulas and code that begin in the text end in it."""
    return all(text.count(mark) % 2 == 0 for mark in ("**", "$", "`")) and text.replace("**", "").count("*") % 2 == 0


def shortened(paragraph):
    """The beginning of a paragraph of prose: whole sentences, of together about SHORT words at most."""
    if len(paragraph.split()) <= SHORT or paragraph.lstrip().startswith(("|", "- ", "* ", "1.", "$$", "```", "#", "<")):
        return paragraph
    begin = 0
    for found in BREAK.finditer(paragraph):
        words = len(paragraph[: found.start()].split())
        if not balanced(paragraph[: found.start()]):
            continue
        if begin and words > SHORT:
            break
        begin = found.start()
        if words > SHORT // 2:
            break
    return f"{paragraph[:begin]} …" if begin else paragraph


def lines(block):
    """About how many lines of text a block takes."""
    if block.startswith("$$"):
        return 3 + block.count("\\\\")
    if block.startswith("|"):
        return 0.7 * len(block.split("\n"))
    return sum(-(-len(line) // LINE) for line in block.split("\n")) + 0.6


def pack(parts, room=ROOM):
    """Puts blocks on as few slides as hold them, in order. A formula stays with what leads to it."""
    slides, used = [[]], 0
    for number, block in enumerate(parts):
        need = lines(block)
        if number + 1 < len(parts) and parts[number + 1].startswith("$$"):
            need += lines(parts[number + 1])
        if slides[-1] and used + need > room:
            slides.append([])
            used = 0
        slides[-1].append(block)
        used += lines(block)
    return [slide for slide in slides if slide]


def listing(source, height):
    """A cell's code, in letters that let its lines and their number fit into so many points."""
    code = source.strip("\n")
    rows = code.split("\n")
    size = min(22, height / (1.25 * len(rows)), 1230 / (0.602 * max(len(row.expandtabs(4)) for row in rows)))
    return f'<div style="font-size:{max(size, 11):.1f}px">\n\n```go\n{code}\n```\n\n</div>'


def in_parts(table):
    """A table in as many as fit on a slide each, all with its head."""
    head, rows = table.split("\n")[:2], table.split("\n")[2:]
    found, used = [[]], 0
    for row in rows:
        need = 1 + max(cell.count("<br>") for cell in row.split("|"))
        if found[-1] and used + need > ROWS:
            found.append([])
            used = 0
        found[-1].append(row)
        used += need
    return ["\n".join([*head, *part]) for part in found]


def shown(outputs):
    """What a cell's outputs show, as blocks of Markdown for one slide each, with the words for the speaker's notes."""
    found, printed = [], ""
    for output in outputs:
        data = output.get("data", {})
        if output["output_type"] == "stream":
            printed += text_of(output["text"])
        elif "text/html" in data:
            fragment = text_of(data["text/html"])
            if "<progress" not in fragment:
                found.append((f'<div class="{"picture" if fragment.startswith("<img") else "bitmaps"}">{fragment}</div>', ""))
        elif "text/markdown" in data:
            text = text_of(data["text/markdown"]).strip()
            words = [block for block in blocks(text) if not block.startswith("|")]
            caption = [f'<p class="caption">{html.escape(shortened(block).strip("*"))}</p>' for block in words if not block.startswith("- ")]
            if text.startswith("*") and not text.startswith("**") and found and found[-1][0].startswith('<div class="picture"'):
                found[-1] = (found[-1][0] + "\n\n" + "\n\n".join(caption), text)
            else:
                tables = [part for block in blocks(text) if block.startswith("|") for part in in_parts(block)]
                found += [("\n\n".join([*caption, table]), "\n\n".join(words)) for table in tables or [""]]
    if printed:
        found.insert(0, (f"```text\n{printed.rstrip()}\n```", ""))
    return found


class Deck:
    """Slides in the making: groups below each other, one for each section."""

    def __init__(self):
        self.cells, self.heading, self.fresh = [], "", True
        self.open, self.notes = [], ""  # a slide that something may be added to, if there is room

    def section(self, heading):
        """Begins a section, with a heading in Markdown."""
        self.close()
        self.heading, self.fresh = heading, True

    def text(self, parts):
        """Puts paragraphs on slides."""
        for slide in pack([shortened(part) for part in parts]):
            self.close()
            self.open, self.notes = slide, "\n\n".join(parts)

    def code(self, source):
        """Puts code on the slide that is open, if it fits in letters that can be read, or on one of its own."""
        if sum(map(lines, self.open)) + 0.75 * len(source.strip().split("\n")) > ROOM:
            self.close()
        self.open.append(listing(source, 540 - 37 * sum(map(lines, self.open))))
        self.close()

    def close(self):
        """Makes the open slide, if there is one."""
        if not self.open:
            return
        kind = "slide" if self.fresh else "subslide"
        self.fresh = False
        heading = self.heading if self.heading.startswith("# ") else f"## {self.heading.lstrip('# ')}"
        self.add("\n\n".join([heading, *self.open]), kind)
        if self.notes:
            self.add(self.notes, "notes")
        self.open, self.notes = [], ""

    def add(self, text, kind):
        self.cells.append(nbformat.v4.new_markdown_cell(text, metadata={"slideshow": {"slide_type": kind}}))


def deck(notebook, name):
    """The slides of a notebook, as a notebook whose cells are slides."""
    made = Deck()
    made.section(f"# {name}")
    for cell in notebook["cells"]:
        source = text_of(cell["source"])
        if cell["cell_type"] == "code" and source.strip() and not source.lstrip().startswith("import"):
            made.code(source)
            for part, notes in shown(cell.get("outputs", [])):
                made.close()
                made.open, made.notes = [part], notes
        elif cell["cell_type"] == "markdown":
            text = []
            for block in blocks(source):
                if re.match(r"#{1,3} ", block):
                    made.text(text)
                    made.section(block)
                    text = []
                elif block.startswith("**What to see") and made.open and not text:
                    # Below the last output, usually the picture.
                    made.open.append(shortened(block))
                    made.notes = "\n\n".join(filter(None, [made.notes, block]))
                else:
                    text.append(block)
            made.text(text)
    made.close()
    return nbformat.v4.new_notebook(cells=made.cells, metadata={**notebook.get("metadata", {}), "title": made.cells[0].source.split("\n")[0].lstrip("# ")})


def write(executed, folder):
    """Writes the slides of an executed notebook into folder, with what they load, and returns their path."""
    from nbconvert import SlidesExporter  # slow to load

    notebook = json.loads(executed.read_text(encoding="utf-8"))
    exporter = SlidesExporter(
        template_name="reveal_offline",
        extra_template_basedirs=[str(HERE)],
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        exclude_anchor_links=True,
        reveal_url_prefix="reveal",
        reveal_theme="white",
        reveal_width=str(WIDTH),
        reveal_height=str(HEIGHT),
    )
    body, _ = exporter.from_notebook_node(deck(notebook, executed.stem))
    # Other notebooks have slides beside these.
    body = re.sub(r'href="([\w-]+)\.ipynb"', r'href="\1.html"', body)
    scripts = folder / "reveal"
    source = cli.installed("sphinx-revealjs", "/_static/revealjs/dist/reveal.js").parents[1]
    for name in ("dist", "plugin/notes", "LICENSE"):
        target = scripts / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (source / name).is_dir():
            shutil.copytree(source / name, target, dirs_exist_ok=True)
        else:
            shutil.copy(source / name, target)
    shutil.copy(cli.installed("sphinx-mathjax-offline", "/tex-svg.js"), scripts)
    path = folder / f"{executed.stem}.html"
    part = path.with_name(path.name + ".part")
    part.write_text(body, encoding="utf-8")
    os.replace(part, path)
    return path


def main():
    parser = argparse.ArgumentParser(prog="slides", description="Makes slides of executed notebooks.")
    parser.add_argument("notebooks", nargs="+", type=Path, metavar="NOTEBOOK")
    parser.add_argument("--out", type=Path, required=True, help="folder for the slides")
    options = parser.parse_args()
    for path in options.notebooks:
        print(write(path, options.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
