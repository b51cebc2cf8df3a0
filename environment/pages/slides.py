"""Slides of an executed notebook: python environment/pages/slides.py --help.

A slide holds one thing: a picture with its claim as the title, the decisive part of a
table, or a few whole sentences. The speaker's notes (key S) have the full text, and
say what was left out. Code is hidden unless asked for.
"""

import argparse
import json
import math
import os
import re
import shutil
import sys
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import nbformat

import cli
from sources import RULED, first_clause, table_of, text_of

HERE = Path(__file__).resolve().parent
WIDTH, HEIGHT = 1280, 720
SLIDES = 30  # of a notebook, at most
LINE = 80  # letters in a line of text
ROOM, FULL, LITTLE = 14, 10, 3  # lines of text on a slide, of a text that is shown in full, and of what begins no slide
SHORT, CONCLUSION, LISTED, LEAD = 55, 90, 90, 25  # words of a paragraph, of one about what there is to see, of a list, and of what only leads to an output
TITLE = 140  # letters of a title, two lines
ROWS, COLUMNS = 8, 6  # of a table, below its head
CELL, WIDE, HIGH = 110, 112, 15  # letters of a table's cell, letters in a row, and lines of all rows
PRINTED, LISTING = 12, 24  # lines of what a cell printed, and of code
OWN = "Density Uncertainty"  # what a table never loses

# Slides that are left out first where there are too many, in this order.
PRINT, MOVED, SECOND, TEXT, TABLE, CODE, PICTURE, KEPT = range(8)
LEFT_OUT = ["what was printed", "a picture at another position", "a further table", "the rest of a text", "a table", "code", "a picture", "a slide"]

FORMULA = re.compile(r"\$\$.*?\$\$", re.DOTALL)
OPAQUE = re.compile(r"\$[^$]+\$|`[^`]+`|(?<=\])\([^()\s]*\)")
END = re.compile(r"(?<!\bal)[.?!][)*\"”]*\s+(?=[A-Z*(\[\"“])")
ENDED = re.compile(r"(?:[.?!][)*\"”]*|(?<![,\s])\s*\$\$)$")  # how a whole sentence ends
LABEL = re.compile(r"\*\*[^*]+[.:?]\*\*\s*")
CONCLUDES = ("**What ", "**How to read")  # begins what is said about the outputs before it
LIST = re.compile(r"(?:[-*]|\d+\.) ")
# What only somebody at the notebook can do.
AT_THE_NOTEBOOK = re.compile(r"\bslid(?:e|es|er|ers|ing)\b|\b(?:this|another|next) cell\b|\bcell by itself\b|\brun the cells?\b|\bthe lines below\b", re.IGNORECASE)
IMAGE = re.compile(r"(?:<small>(?P<position>[^<]*)</small><br>)?(?P<image><img [^>]*>)")


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


def kind(block):
    """What a block of Markdown is. A formula is part of the prose around it."""
    if RULED.match(block):
        return "table"
    if LIST.match(block):
        return "list"
    return "as it is" if block.startswith(("```", "#", "<")) else "prose"


def statements(parts):
    """Puts blocks together that say one thing: a sentence with the formulas, the list or the table inside of it or after it, and a label with what follows."""
    found, last = [], ""
    for block in parts:
        leads = kind(last) == "prose" and (LABEL.fullmatch(last) or not ENDED.search(last))
        if last and (leads or block.startswith("$$") or block[:1].islower()):
            found[-1] += f"\n\n{block}"
        else:
            found.append(block)
        last = block
    return found


def masked(text):
    """The text with formulas and code in letters that end no sentence, in their places. A displayed formula ends one, unless it goes on."""
    text = FORMULA.sub(lambda found: "X" * (len(found[0]) - 1) + ("," if found[0].rstrip("$ \n").endswith(",") else "."), text)
    return OPAQUE.sub(lambda found: "X" * len(found[0]), text)


def sentences(text):
    """The sentences of a text, with the formulas in them. A label, as **Claim.**, belongs to the sentence after it."""
    mask, found, begin = masked(text), [], 0
    for end in END.finditer(mask):
        before = mask[begin : end.end()]
        emphasis = before.count("**") % 2 == 0 and before.replace("**", "").count("*") % 2 == 0
        if emphasis and not LABEL.fullmatch(before):
            found.append(text[begin : end.end()].strip())
            begin = end.end()
    return [*found, text[begin:].strip()]


def words(text):
    return len(FORMULA.sub("", text).split())


def some(told, limit, conclusion):
    """Of sentences the first, as many as have together so many words, with those around displayed formulas and, of a conclusion, the last."""
    kept = {number for number, sentence in enumerate(told) if "$$" in sentence or (conclusion and number == len(told) - 1)}
    left = limit - sum(words(told[number]) for number in kept)
    for number in range(len(told)):
        if number not in kept:
            left -= words(told[number])
            if left < 0 and number:
                break
            kept.add(number)
    return [told[number] for number in sorted(kept)]


def prose(text, limit, conclusion=False):
    """Whole sentences of a text, of together about so many words, none of which asks to do something at the notebook. Of a conclusion the last is among them."""
    label = LABEL.match(text)
    label = label[0] if label else ""
    told = [sentence for sentence in sentences(text[len(label) :]) if not AT_THE_NOTEBOOK.search(masked(sentence))]
    if sum(map(words, told)) > limit:
        told = some(told, limit, conclusion or not ENDED.search(text))
    return label * bool(told) + "".join(sentence + ("\n\n" if sentence.endswith("$$") else " ") for sentence in told).rstrip()


def items(text, limit):
    """A list, of whose entries only the first sentences are left where it is long."""
    if words(text) <= limit:
        return text
    return "\n".join(sentences(item)[0] for item in re.split(r"\n(?=(?:[-*]|\d+\.) )", text))


def high(row):
    """About how many lines a row of a table takes."""
    width = WIDE // len(row)
    return max(max(1, -(-len(cell.replace("**", "")) // width)) for cell in row)


def marked(cell):
    """Whether a table's cell has the mark of a decided difference."""
    return "▲" in cell or "▽" in cell


def decided(cell):
    """Whether something in a table's cell stands out."""
    return "**" in cell or marked(cell)


def grouped(rows):
    """The rows of a table with the headings of their groups, which are empty for rows of none: a row of a name in bold alone begins a group."""
    heading, found = [], []
    for row in rows:
        if row[0].startswith("**") and len(row) > 1 and not any(row[1:]):
            heading = row
        else:
            found.append((heading, row))
    return found


def reduced(table):
    """The decisive part of a table, and below it how much is left out.

    Rows in which something is decided, then those with something in bold, then rows of OWN come before others, and so do
    columns of OWN, with such cells, and in which rows differ. Columns of long texts are left out.
    Headings of groups stay with their rows.
    """
    head, rule, *rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table.split("\n")]
    width = len(head)
    headings, rows = zip(*grouped([row + [""] * (width - len(row)) for row in rows]), strict=True) if rows else ((), ())
    columns = [j for j in range(width) if not j or all(len(row[j]) <= CELL for row in rows)]
    columns.sort(key=lambda j: (j > 0, head[j] != OWN, -sum(decided(row[j]) for row in rows), len({row[j] for row in rows}) == 1 < len(rows), j))
    columns = sorted(columns[:COLUMNS])
    order = sorted(range(len(rows)), key=lambda i: (not any(map(marked, rows[i][1:])), not any(map(decided, rows[i][1:])), OWN not in rows[i], i))

    def shown(count):
        """The lines of so many rows, with the headings of their groups."""
        made, last = [], []
        for i in sorted(order[:count]):
            made += [headings[i]] * (headings[i] != last) * bool(headings[i]) + [rows[i]]
            last = headings[i]
        return [[row[j] for j in columns] for row in made]

    count = min(len(rows), ROWS)
    while count > 1 and (len(shown(count)) > ROWS or sum(map(high, shown(count))) > HIGH):
        count -= 1
    lines = ["| " + " | ".join(row) + " |" for row in [[head[j] for j in columns], [rule[j] for j in columns], *shown(count)]]
    counts = (count, len(rows), "rows"), (len(columns), width, "columns")
    parts = [f"{have} of {total} {name}" for have, total, name in counts if have < total]
    return "\n\n".join(["\n".join(lines), *[small(f"{' and '.join(parts)}; the notebook has the whole table.")] * bool(parts)])


def small(text):
    """Markdown in small letters."""
    return f'<div class="caption">\n\n{text}\n\n</div>'


def shortened(statement, conclusion=False, in_full=False):
    """What a slide shows of a statement."""
    found = []
    for what, parts in groupby(blocks(statement), kind):
        text = "\n\n".join(parts)
        if what == "prose":
            text = prose(text, math.inf if in_full else CONCLUSION if conclusion else SHORT, conclusion)
        elif what == "list":
            text = items(text, math.inf if in_full else LISTED)
        elif what == "table":
            text = reduced(text)
        found += [text] if text else []
    return "\n\n".join(found)


def letters(line):
    """About how many letters a line of Markdown shows."""
    return len(re.sub(r"\$[^$]+\$", lambda found: "x" * (len(found[0]) // 2), re.sub(r"\]\([^()\s]*\)|\*\*|`", "", line)))


def lines(text):
    """About how many lines a text takes on a slide."""
    need = 0
    for block in blocks(text):
        if block.startswith("$$"):
            need += 3 + block.count("\\\\")
        elif kind(block) == "table":
            need += 1.2 * len(block.split("\n"))
        else:
            need += sum(-(-letters(line) // LINE) for line in block.split("\n")) + 0.6
    return need


def pack(parts, room=ROOM):
    """Puts texts on as few slides as hold them, in order, and returns the numbers of the texts on each. A little at the end begins no slide."""
    slides, used = [[]], 0
    for number, text in enumerate(parts):
        used += lines(text)
        if slides[-1] and used > room + LITTLE * (number == len(parts) - 1):
            slides.append([])
            used = lines(text)
        slides[-1].append(number)
    return slides


def in_parts(source):
    """Code in parts of at most LISTING lines, which end at empty lines where they can."""
    parts = [[]]
    for part in re.split(r"\n\n+", source.strip("\n")):
        rows = part.split("\n")
        for begin in range(0, len(rows), LISTING):
            more = rows[begin : begin + LISTING]
            if parts[-1] and len(parts[-1]) + 1 + len(more) > LISTING:
                parts.append([])
            parts[-1] += [""] * bool(parts[-1]) + more
    return ["\n".join(part) for part in parts]


def listing(text, language):
    """Code, or what it printed, in letters that let its lines and their number fit on a slide."""
    text = text.strip("\n")
    rows = text.split("\n")
    size = min(26, 540 / (1.25 * len(rows)), 1230 / (0.602 * max(len(row.expandtabs(4)) for row in rows)))
    return f'<div style="font-size:{max(size, 11):.1f}px">\n\n```{language}\n{text}\n```\n\n</div>'


def title(text, otherwise):
    """The first sentence of a text, or the first clause of it, where that makes a title."""
    first = sentences(LABEL.sub("", text, count=1).strip("*"))[0]
    for part in (first, first_clause(first)):
        if len(part) <= TITLE and part.count("(") == part.count(")") and all(part.count(mark) % 2 == 0 for mark in "*$`"):
            return part.rstrip(".:")
    return otherwise


@dataclass
class Slide:
    """A slide, in Markdown."""

    heading: str  # of its section
    title: str
    body: str
    notes: list
    weight: int
    section: int


class Deck:
    """Slides in the making."""

    def __init__(self, name):
        self.slides, self.heading, self.section = [], name, 0
        self.pictures = []  # the slides of the pictures since the last text, a list for each output
        self.lead = ""  # a short text, to be shown with the output after it

    def begin(self, heading):
        """Begins a section."""
        self.flush()
        self.heading, self.section, self.pictures = heading.lstrip("# "), self.section + 1, []

    def add(self, body, notes, weight, title=""):
        """Adds a slide and returns it."""
        first = not self.slides or self.slides[-1].section != self.section
        self.slides.append(Slide(self.heading, title or self.heading, body, [note for note in notes if note], KEPT if first else weight, self.section))
        return self.slides[-1]

    def take_lead(self):
        """Returns the text that leads to an output, once."""
        lead, self.lead = self.lead, ""
        return lead

    def flush(self):
        """Gives a text that was to lead to an output a slide of its own, if there was no output."""
        if self.lead:
            self.add(shortened(self.lead), [self.take_lead()], TEXT)

    def text(self, parts):
        """Puts paragraphs on slides. What they say first about the one picture before them becomes its title."""
        if not parts:
            return
        self.flush()
        told = statements(parts)
        if len(told) == 1 and self.slides and kind(told[0]) == "prose" and "$$" not in told[0] and not LABEL.match(told[0]) and words(told[0]) <= LEAD:
            self.lead = told[0]
            return
        conclusion = told[0].startswith(CONCLUDES)
        if told[0].startswith("**What to see") and len(self.pictures) == 1:
            for slide in self.pictures[0]:
                slide.title = title(told[0], slide.title)
        self.pictures = []
        shown = [shortened(statement, in_full=True) for statement in told]
        if sum(map(lines, shown)) > FULL:
            shown = [shortened(statement, conclusion) for statement in told]
        for place, numbers in enumerate(pack(shown)):
            body = "\n\n".join(filter(None, (shown[number] for number in numbers)))
            notes = [told[number] for number in numbers]
            if body:
                self.add(body, notes, TEXT if place else KEPT)
            elif self.slides:
                self.slides[-1].notes += notes

    def outputs(self, outputs):
        """Puts what a cell shows on slides: each picture and each table on its own, and at last what was printed."""
        printed, drawn = "", False
        for output in outputs:
            data = output.get("data", {})
            if output["output_type"] == "stream":
                printed += text_of(output["text"])
            elif "text/html" in data and "<progress" not in text_of(data["text/html"]):
                self.drawing(text_of(data["text/html"]))
                drawn = True
            elif "text/markdown" in data:
                text = text_of(data["text/markdown"]).strip()
                if drawn and re.fullmatch(r"\*[^*].*\*", text, re.DOTALL):
                    for slide in self.pictures[-1]:
                        slide.title, slide.notes[-1:] = title(text, slide.title), [text]
                elif "table" in map(kind, blocks(text)):
                    self.table(text, SECOND if drawn else TABLE)
                else:
                    self.flush()
                    self.lead = text
        self.printed(printed)

    def drawing(self, fragment):
        """Makes a slide of each picture of an output. Rows of bitmaps are one picture."""
        lead = self.take_lead()
        heading = title(lead, "") if lead else ""
        if "image-rendering:pixelated" in fragment:
            row = f'<div class="bitmaps">{fragment}</div>'
            if self.pictures and self.slides[-1] in self.pictures[-1] and self.slides[-1].body.startswith('<div class="bitmaps">'):
                self.slides[-1].body += row
                self.slides[-1].notes += [lead] * bool(lead)
            else:
                self.pictures.append([self.add(row, [lead], PICTURE, heading)])
            return
        made = []
        for found in IMAGE.finditer(fragment):
            position, alt = found["position"] or "", re.search(r'alt="([^"]*)"', found["image"])
            body = f'<div class="picture">{found["image"]}</div>' + f'\n\n<p class="caption">{position}</p>' * bool(position)
            made.append(self.add(body, [lead, alt[1] if alt else ""], MOVED if made else PICTURE, heading))
        self.pictures.append(made)

    def table(self, text, weight):
        """Makes a slide of a table, whose question is the title, with its caption and what explains its marks."""
        lead, table = self.take_lead(), table_of(text)
        legend = " ".join(said for said in table.said if "▲" in said)
        said = "\n\n".join(filter(None, [lead, table.caption and prose(table.caption, SHORT)]))
        shown = [small(said)] * bool(said) + [reduced(table.rows)] + [small(legend)] * bool(legend)
        self.add("\n\n".join(shown), [lead, table.caption, *table.said, *table.measured], weight, table.title)

    def printed(self, text):
        """Makes a slide of what a cell printed, or of its beginning."""
        rows = text.strip("\n").split("\n")
        if text.strip():
            self.add(listing("\n".join(rows[:PRINTED]), "text"), [self.take_lead(), f"```text\n{text.rstrip()}\n```"], PRINT)

    def limited(self):
        """Leaves out slides, the least important first, until there are few enough; the notes of the slide before say which."""
        while len(self.slides) > SLIDES:
            number = min(range(1, len(self.slides)), key=lambda number: (self.slides[number].weight, -number))
            out = self.slides.pop(number)
            self.slides[number - 1].notes += [f"Left out here, because there would be more than {SLIDES} slides: {LEFT_OUT[out.weight]}, \"{out.title}\".", *out.notes]

    def cells(self):
        """The slides as cells: each of Markdown, and those of a section after the first below it."""
        made, section = [], -1
        for number, slide in enumerate(self.slides):
            # A number with a point would begin a list.
            above = small(re.sub(r"^(\d+)\.", r"\1\.", slide.heading)) + "\n\n" if not slide.heading.endswith(slide.title) else ""
            source = f"{above}{'##' if number else '#'} {slide.title}\n\n{slide.body}"
            for text, what in ((source, "subslide" if slide.section == section else "slide"), ("\n\n".join(slide.notes), "notes")):
                if text:
                    made.append(nbformat.v4.new_markdown_cell(text, metadata={"slideshow": {"slide_type": what}}))
            section = slide.section
        return made


def deck(notebook, name, code=False):
    """The slides of a notebook, as a notebook whose cells are slides; with code or without."""
    made = Deck(name)
    for cell in notebook["cells"]:
        source = text_of(cell["source"])
        if cell["cell_type"] == "code":
            imports = source.lstrip().startswith("import")
            if code and source.strip() and not imports:
                made.flush()
                for part in in_parts(source):
                    made.add(listing(part, "go"), [], CODE)
            made.outputs([] if imports else cell.get("outputs", []))
        elif cell["cell_type"] == "markdown":
            text = []
            for block in blocks(source):
                if re.match(r"#{1,3} ", block):
                    made.text(text)
                    made.begin(block)
                    text = []
                else:
                    text.append(block)
            made.text(text)
    made.flush()
    made.limited()
    return nbformat.v4.new_notebook(cells=made.cells(), metadata={**notebook.get("metadata", {}), "title": made.slides[0].title if made.slides else name})


def write(executed, folder, code=False):
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
    body, _ = exporter.from_notebook_node(deck(notebook, executed.stem, code))
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
    parser.add_argument("--code", action="store_true", help="show the code of the cells too")
    options = parser.parse_args()
    for path in options.notebooks:
        print(write(path, options.out, options.code))
    return 0


if __name__ == "__main__":
    sys.exit(main())
