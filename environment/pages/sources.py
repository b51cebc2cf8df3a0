"""The sources of the pages: executed notebooks, tables and figures, as Sphinx and MyST read them."""

import base64
import html
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

PICTURE = re.compile(r'<img [^>]*?src="data:image/(?P<kind>svg\+xml|png);base64,(?P<data>[^"]*)"[^>]*>')
CLAIM = re.compile(r"^\*\*Claim\.\*\*\s+\*(?P<line>.+?)\*(?!\*)", re.MULTILINE | re.DOTALL)
ENDINGS = {"svg+xml": ".svg", "png": ".png"}
SHORT = 40  # words of a caption that stands above its table in full


@dataclass
class Page:
    """What the first page shows of a page."""

    name: str  # of its file, without the ending
    title: str
    line: str
    picture: str = ""  # a file, relative to the folder of sources
    preview: str = ""  # Markdown, where there is no picture


def text_of(value):
    """The text of a field that the format of notebooks allows to be a string or a list of lines."""
    return value if isinstance(value, str) else "".join(value)


def ended(sentence):
    """A sentence with a sign at its end."""
    return sentence if sentence.endswith((".", "?", "!")) else sentence + "."


def first_sentence(text):
    """The first sentence of a paragraph."""
    text = " ".join(text.split())
    return re.split(r"(?<=[.?!])\s+(?=[A-Z])", text, maxsplit=1)[0]


def first_clause(caption):
    """What the first sentence of a caption says before a colon, unless that is only a name."""
    sentence = first_sentence(caption)
    head, _, _ = sentence.partition(": ")
    return ended(head if len(head.split()) > 3 else sentence)


def title_and_line(notebook, fallback):
    """A notebook's title and its claim, or else its first sentence."""
    texts = [text_of(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    first = texts[0] if texts else ""
    heading = re.search(r"^#\s+(.+)$", first, re.MULTILINE)
    title = heading[1].strip() if heading else fallback
    claim = CLAIM.search(first)
    if claim:
        line = " ".join(claim["line"].split())
        return title, ended(line)
    paragraphs = [part for part in first.split("\n\n") if part.strip() and not part.startswith("#")]
    return title, first_sentence(paragraphs[0]) if paragraphs else ""


def take_pictures(notebook, name, folder):
    """Moves the pictures of a notebook's outputs into files, which a tap on the picture opens. Returns the files."""
    files = []

    def replace(match):
        target = folder / f"{name}-{len(files) + 1}{ENDINGS[match['kind']]}"
        target.write_bytes(base64.b64decode(match["data"]))
        files.append(target)
        image = match[0].replace(f"data:image/{match['kind']};base64,{match['data']}", f"_static/pictures/{target.name}")
        return f'<a class="picture" href="_static/pictures/{target.name}">{image}</a>'

    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "text/html" in data:
                data["text/html"] = PICTURE.sub(replace, text_of(data["text/html"]))
    return files


def area(picture):
    """How large a drawing is, in square points; bitmaps, which are small in the notebooks, count as less than any."""
    if picture.suffix != ".svg":
        return 0.0
    _, _, width, height = ElementTree.parse(picture).getroot().get("viewBox", "0 0 0 0").split()
    return float(width) * float(height)


def fold_imports(notebook):
    """Folds the cells that begin with imports, which are long and seldom read."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and text_of(cell["source"]).lstrip().startswith("import"):
            metadata = cell["metadata"]
            metadata["tags"] = [*metadata.get("tags", []), "hide-input"]
            metadata["mystnb"] = {"code_prompt_show": "Show the imports", "code_prompt_hide": "Hide the imports"}


def notebook_page(path, executed, folder):
    """Makes the source of a notebook's page: of the executed one, or of the notebook without outputs where that was not run as it is now."""
    current = executed.exists() and executed.stat().st_mtime >= path.stat().st_mtime
    notebook = json.loads((executed if current else path).read_text(encoding="utf-8"))
    name = path.stem
    title, line = title_and_line(notebook, name)
    pictures = take_pictures(notebook, name, folder / "_static" / "pictures")
    fold_imports(notebook)
    if not current:
        note = "*This notebook was not run as it is now; its code stands here without what it prints and draws.*"
        notebook["cells"].insert(1, {"cell_type": "markdown", "id": "not-run", "metadata": {}, "source": note})
    (folder / path.name).write_text(json.dumps(notebook), encoding="utf-8")
    return Page(name, title, line, f"_static/pictures/{max(pictures, key=area).name}" if pictures else "")


def capitalized(text):
    return text[:1].upper() + text[1:]


def description(drawing):
    """The caption of a figure, and what it was made from, which the drawing holds."""
    caption, _, citation = (ElementTree.parse(drawing).getroot().findtext("{http://www.w3.org/2000/svg}desc") or "").partition("\n")
    return caption, citation


def figure_page(path, doc, folder):
    """Makes the source of a figure's page."""
    caption, citation = description(path)
    title, name = capitalized(doc), f"figure-{path.stem}"
    shutil.copy(path, folder / "_static" / "pictures" / path.name)
    place = f"_static/pictures/{path.name}"
    source = f'# {title}\n\n<a class="picture" href="{place}"><img alt="{html.escape(caption)}" src="{place}"></a>\n\n{caption}\n\n'
    (folder / f"{name}.md").write_text(source + f'<p class="citation">{html.escape(citation)}</p>\n', encoding="utf-8")
    return Page(name, title, first_clause(caption), place)


def preview(text, rows=5, columns=4):
    """The upper left corner of the first table of a Markdown text."""
    lines = [line for line in text.splitlines() if line.startswith("|")][: rows + 2]
    cells = [re.split(r"(?<!\\)\|", line)[1:-1][:columns] for line in lines]
    return "\n".join("|" + "|".join(row) + "|" for row in cells)


def in_short(caption):
    """The part of a caption that fits above a table, and the rest of it."""
    first = caption if len(caption.split()) <= SHORT else first_sentence(caption)
    return first, caption[len(first) :].strip()


def table_page(path, doc, folder):
    """Makes the source of a table's page: its caption, the table, notes, how it was measured, and what it was made from."""
    caption, table, *notes, citation = path.read_text(encoding="utf-8").rstrip("\n").split("\n\n")
    title, name = capitalized(doc), f"table-{path.stem}"
    first, rest = in_short(caption)
    parts = [f"# {title}", ":::::{div} table-page", first, table, *notes]
    if rest:
        parts += ["::::{dropdown} How this was measured", rest, "::::"]
    parts += [f'<p class="citation">{html.escape(citation)}</p>', ":::::", ""]
    (folder / f"{name}.md").write_text("\n\n".join(parts), encoding="utf-8")
    return Page(name, title, first_clause(caption), preview=preview(table))


def card(page):
    """A page on the first page: picture, title and line."""
    lines = [f"::::{{grid-item-card}} {page.title}", f":link: {page.name}", ":link-type: doc"]
    if page.picture:
        # The line below says what there is to see.
        lines += [f":img-top: {page.picture}", ":img-alt: "]
    lines.append("")
    if page.preview:
        lines += [":::{div} preview", page.preview, ":::", ""]
    return "\n".join([*lines, page.line, "::::"])


def section(title, pages):
    """A part of the first page, and of the contents."""
    columns = 2 if any(page.picture for page in pages) else 3
    if not pages:
        return ""
    contents = "\n".join(page.name for page in pages)
    cards = "\n".join(card(page) for page in pages)
    return f"## {title}\n\n:::::{{grid}} 1 2 2 {columns}\n:gutter: 3\n\n{cards}\n:::::\n\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{contents}\n```\n"


HANDOUT = """
The method on one page, to be printed: <a href="handout.html">handout</a>.
"""


def write(notebooks, made, catalogue, folder, handout):
    """Writes the sources of all pages into folder.

    notebooks are the paths of the notebooks, made is the folder with what was made of
    them and of the results: notebooks, figures and tables. catalogue has the names and
    descriptions of figures and tables, in their order. handout says whether there is one.
    """
    (folder / "_static" / "pictures").mkdir(parents=True)
    here = Path(__file__).parent
    for name in ("pages.css", "pages.js"):
        shutil.copy(here / name, folder / "_static" / name)
    parts = {"Notebooks": [notebook_page(path, made / "notebooks" / path.name, folder) for path in notebooks]}
    for kind, ending, make in (("figures", ".svg", figure_page), ("tables", ".md", table_page)):
        paths = [(made / kind / (named["name"] + ending), named["doc"]) for named in catalogue.get(kind, [])]
        parts[kind.capitalize()] = [make(path, doc, folder) for path, doc in paths if path.exists()]
    index = (here / "index.md").read_text(encoding="utf-8")
    text = [index, *([HANDOUT] if handout else []), *(section(*part) for part in parts.items())]
    (folder / "index.md").write_text("\n".join(text), encoding="utf-8")
