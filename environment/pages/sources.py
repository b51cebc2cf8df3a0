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
IMAGE = re.compile(r"!\[(?P<alt>[^\]]*)\]\((?P<path>[^)]*)\)")
ENDINGS = {"svg+xml": ".svg", "png": ".png"}
HERE = Path(__file__).resolve().parent
GROUPS = {
    "Claims of the paper": ("claims",),
    "Figure 1 and other toys": ("figure1", "distance", "gap-ratio"),
    "UCI regression": ("uci",),
    "Images": ("cifar", "ood", "rank1"),
    "Where the density helps": ("where",),
}
RULED = re.compile(r"\|.*\n\|[ :|-]+(?:\n|$)")  # a table's head
MEASURED = "<details><summary>"  # begins how a table was measured


@dataclass
class Page:
    """What the first page shows of a page."""

    file: str  # of its source
    title: str
    line: str
    picture: str = ""  # a file, relative to the folder of sources


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
    return Page(path.name, title, line, f"_static/pictures/{max(pictures, key=area).name}" if pictures else "")


def capitalized(text):
    return text[:1].upper() + text[1:]


def description(drawing):
    """The caption of a figure, and what it was made from, which the drawing holds."""
    caption, _, citation = (ElementTree.parse(drawing).getroot().findtext("{http://www.w3.org/2000/svg}desc") or "").partition("\n")
    return caption, citation


def copied(picture, folder):
    """Copies a picture to the sources, and returns its place there."""
    shutil.copy(picture, folder / "_static" / "pictures" / picture.name)
    return f"_static/pictures/{picture.name}"


def figure(place, caption):
    """A picture in Markdown, which a tap opens."""
    return f'<a class="picture" href="{place}"><img alt="{html.escape(caption)}" src="{place}"></a>'


def figure_page(path, doc, folder):
    """Makes the source of a figure's page."""
    caption, citation = description(path)
    title, name, place = capitalized(doc), f"figure-{path.stem}", copied(path, folder)
    parts = [f"# {title}", figure(place, caption), caption, f'<p class="citation">{html.escape(citation)}</p>', ""]
    (folder / f"{name}.md").write_text("\n\n".join(parts), encoding="utf-8")
    return Page(f"{name}.md", title, first_clause(caption), place)


@dataclass
class Table:
    """A table as the command writes it, and as notebooks show it."""

    title: str
    caption: str
    rows: str  # in Markdown, with its head
    said: list  # paragraphs below it
    measured: list  # how it was measured: paragraphs that readers unfold

    def has_rows(self):
        """Whether there is more than the head."""
        return self.rows.count("\n") > 1


def table_of(text):
    """The parts of a table's Markdown, or nothing if it has no table."""
    parts = [part for part in text.strip().split("\n\n") if part.strip() and part.strip() != "</details>"]
    place = next((number for number, part in enumerate(parts) if RULED.match(part)), None)
    if place is None:
        return None
    fold = next((number for number, part in enumerate(parts) if part.startswith(MEASURED)), len(parts))
    title = next((part for part in parts[:place] if re.fullmatch(r"\*\*[^*]+\*\*", part)), "")
    caption = "\n\n".join(part for part in parts[:place] if part != title)
    return Table(title.strip("*"), caption, parts[place], parts[place + 1 : fold], parts[fold + 1 :])


def table_page(path, doc, picture, folder):
    """Makes the source of a table's page: its caption, a picture of it where there is one, the table, what is said below it, how it was measured, and what it was made from."""
    text, _, citation = path.read_text(encoding="utf-8").rstrip("\n").rpartition("\n\n")
    table, name = table_of(text), f"table-{path.stem}"
    title, place = table.title or doc, ""
    parts = [f"# {title}", ":::::{div} table-page", table.caption]
    if picture.exists():
        shown, _ = description(picture)
        place = copied(picture, folder)
        parts += [figure(place, shown), f'<p class="caption">{html.escape(shown)}</p>']
    parts += [table.rows, *table.said]
    if table.measured:
        parts += ["::::{dropdown} How this was measured", *table.measured, "::::"]
    parts += [f'<p class="citation">{html.escape(citation)}</p>', ":::::", ""]
    (folder / f"{name}.md").write_text("\n\n".join(parts), encoding="utf-8")
    return Page(f"{name}.md", title, first_sentence(table.caption), place)


def card(page):
    """A page on the first page: picture, title and line."""
    lines = [f"::::{{grid-item-card}} {page.title}", f":link: {page.file.partition('.')[0]}", ":link-type: doc"]
    if page.picture:
        # The line below says what there is to see.
        lines += [f":img-top: {page.picture}", ":img-alt: "]
    return "\n".join([*lines, "", page.line, "::::"])


def section(title, pages):
    """A part of the first page, and of the contents: cards of the pages that have pictures, and a list of the others."""
    if not pages:
        return ""
    parts = [f"## {title}"]
    cards = [card(page) for page in pages if page.picture]
    if cards:
        parts.append("\n".join([":::::{grid} 1 2 2 3", ":gutter: 3", "", *cards, ":::::"]))
    parts.append("\n".join(f"- [{page.title}]({page.file}): {page.line}" for page in pages if not page.picture))
    contents = "\n".join(page.file for page in pages)
    parts.append(f"```{{toctree}}\n:hidden:\n:caption: {title}\n\n{contents}\n```")
    return "\n\n".join(parts) + "\n"


def group(name):
    """The part of the first page in which a figure or a table belongs, by the beginning of its name."""
    return next((title for title, beginnings in GROUPS.items() if name.startswith(beginnings)), "More figures and tables")


def set_of(table, sets):
    """The set of experiments of a table: the one with its name, or else the only one with the most words that are all words of it."""

    def words(name):
        return {re.sub(r"[0-9]+$", "", word) for word in name.split("-")}

    if table in sets:
        return table
    fitting = [name for name in sets if words(name) <= words(table)]
    most = max((len(words(name)) for name in fitting), default=0)
    found = [name for name in fitting if len(words(name)) == most]
    return found[0] if len(found) == 1 else None


def not_run(tables, sets):
    """The part of the first page with the tables, as names and titles, that have no rows as nothing was run for them, and how to run it."""
    if not tables:
        return ""
    lines = ["## Not run", ""]
    for name, title in tables:
        known = set_of(name, sets)
        lines.append(f"- {title}: `go run ./figures/cmd/reproduce {f'run {known}' if known else 'list'}`")
    return "\n".join(lines) + "\n"


def findings(folder):
    """What the first page begins with, findings.md, whose pictures are copied."""

    def replaced(match):
        picture = HERE / match["path"]
        if not picture.exists():
            return match[0]  # Sphinx says that it is missing
        return f"![{match['alt']}]({copied(picture, folder)})"

    return IMAGE.sub(replaced, (HERE / "findings.md").read_text(encoding="utf-8"))


HANDOUT = """
The method on one page, to be printed: <a href="handout.html">handout</a>.
"""


LIVE = """
Move the points of Figure 1 and watch five methods train, in your browser: <a href="live.html">the live page</a>.
"""


def write(notebooks, made, catalogue, folder, handout, live):
    """Writes the sources of all pages into folder.

    notebooks are the paths of the notebooks, made is the folder with what was made of
    them and of the results: notebooks, figures and tables. catalogue has the names and
    descriptions of figures, tables and sets of experiments, in their order. handout and
    live say whether there are these pages.
    """
    (folder / "_static" / "pictures").mkdir(parents=True)
    for name in ("pages.css", "pages.js"):
        shutil.copy(HERE / name, folder / "_static" / name)
    parts = {"Notebooks": [notebook_page(path, made / "notebooks" / path.name, folder) for path in notebooks]}
    parts |= {title: [] for title in GROUPS}
    tables = {named["name"]: (made / "tables" / f"{named['name']}.md", capitalized(named["doc"])) for named in catalogue.get("tables", [])}
    tables = {name: (path, doc, table_of(path.read_text(encoding="utf-8"))) for name, (path, doc) in tables.items() if path.exists()}
    empty = [(name, table.title or doc) for name, (_, doc, table) in tables.items() if not table.has_rows()]
    tables = {name: found for name, found in tables.items() if found[2].has_rows()}
    for named in catalogue.get("figures", []):
        path = made / "figures" / f"{named['name']}.svg"
        if path.exists() and named["name"] not in tables:  # on whose page it is
            parts.setdefault(group(named["name"]), []).append(figure_page(path, named["doc"], folder))
    for name, (path, doc, _) in tables.items():
        parts.setdefault(group(name), []).append(table_page(path, doc, made / "figures" / f"{name}.svg", folder))
    index = (HERE / "index.md").read_text(encoding="utf-8")
    sets = [named["name"] for named in catalogue.get("sets", [])]
    text = [index, findings(folder), *([LIVE] if live else []), *([HANDOUT] if handout else []), *(section(*part) for part in parts.items()), not_run(empty, sets)]
    (folder / "index.md").write_text("\n".join(text), encoding="utf-8")
