"""The rules that a notebook must keep, each a function that returns complaints.

A notebook is the parsed JSON document (nbformat 4). Rules about the source are
checked on the file as it is kept; rules about the run on what the run left.
"""

import re
from dataclasses import dataclass

import nbformat

KERNEL = "gonb"
MOST_CODE_LINES = 100
FEWEST_WORDS_PER_LINE = 8
MOST_WORDS_PER_LINE = 15.5


@dataclass(frozen=True)
class Complaint:
    """What is wrong, under a short name of the rule, and in which cell (from 1)."""

    rule: str
    text: str
    cell: int = 0

    def __str__(self):
        where = f"cell {self.cell}: " if self.cell else ""
        return f"{where}{self.text} [{self.rule}]"


def text_of(value):
    """The text of a field that the format allows to be a string or a list of lines."""
    return value if isinstance(value, str) else "".join(value)


def code_cells(notebook):
    """The cells with code in them, with their numbers, counted over all cells."""
    return [
        (number, cell)
        for number, cell in enumerate(notebook["cells"], 1)
        if cell["cell_type"] == "code" and text_of(cell["source"]).strip()
    ]


def stream(cell, name):
    """What a cell wrote to stdout or stderr."""
    return "".join(
        text_of(output["text"])
        for output in cell.get("outputs", [])
        if output["output_type"] == "stream" and output["name"] == name
    )


# Rules about the source.


def as_saved(text):
    """The rule about the file itself: a notebook that is opened and saved in Jupyter must not change."""
    if text != nbformat.writes(nbformat.reads(text, as_version=4)) + "\n":
        yield Complaint("as-saved", "Jupyter would write the file in another form; open it and save it there once")


def kernelspec(notebook):
    name = notebook.get("metadata", {}).get("kernelspec", {}).get("name")
    if name != KERNEL:
        yield Complaint("kernelspec", f"the kernel is {name!r}, want {KERNEL!r}")


def committed_output(notebook):
    for number, cell in enumerate(notebook["cells"], 1):
        if cell.get("outputs"):
            yield Complaint("committed-output", "outputs are stored in the file; clear them before committing", number)
        if cell.get("execution_count") is not None:
            yield Complaint("committed-output", "an execution count is stored in the file; clear all outputs", number)


# Folders that exist on one machine only, and Windows drives.
ABSOLUTE = re.compile(
    r"""(?<![\w.)}$/:~-])/(?:home|Users|root|tmp|var|work|workspace|opt|mnt|media|srv|data|scratch|usr|etc|content)/[\w.-]"""
    r"""|(?<!\w)[A-Za-z]:\\{1,2}\w"""
    r"""|(?<!\w)~/\w"""
    r"""|["'`]/[\w.-]+/[\w./-]*"""
)


def absolute_path(notebook):
    for number, cell in enumerate(notebook["cells"], 1):
        found = ABSOLUTE.search(text_of(cell["source"]))
        if found:
            line = text_of(cell["source"])[: found.start()].count("\n") + 1
            yield Complaint("absolute-path", f"line {line} names an absolute path, {found.group().strip()!r}; it exists on one machine only", number)


DOT_IMPORT = re.compile(r'^\s*(?:import\s+)?\.\s+["`]', re.MULTILINE)


def dot_import(notebook):
    for number, cell in code_cells(notebook):
        if DOT_IMPORT.search(text_of(cell["source"])):
            yield Complaint("dot-import", "a dot import fails in every other cell; import the package under its name", number)


SET_UP = re.compile(r"^[!%].*(?:\bgo work\b|\bgoworkfix\b|\bnoautoget\b)", re.MULTILINE)


def set_up_line(notebook):
    for number, cell in code_cells(notebook):
        found = SET_UP.search(text_of(cell["source"]))
        if found:
            yield Complaint("set-up-line", f"{found.group()!r} is not needed: the kernel is bound to the checkout; begin with the imports", number)


def visible_code_lines(notebook):
    """Lines of code a reader sees: not blank, and in a cell that is not hidden."""
    lines = 0
    for _, cell in code_cells(notebook):
        metadata = cell.get("metadata", {})
        if metadata.get("jupyter", {}).get("source_hidden") or "hide-input" in metadata.get("tags", []):
            continue
        lines += sum(1 for line in text_of(cell["source"]).splitlines() if line.strip())
    return lines


def words(notebook):
    """Words of the prose. A formula counts as one word; code, links' targets, markup and the text of slides as none."""
    count = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "markdown" or "remove-cell" in cell.get("metadata", {}).get("tags", []):
            continue
        text = text_of(cell["source"])
        text = re.sub(r"```.*?```|<!--.*?-->", " ", text, flags=re.DOTALL)
        text = re.sub(r"\$\$.*?\$\$|\$[^$\n]+\$", " formula ", text, flags=re.DOTALL)
        text = re.sub(r"\]\([^)]*\)|<[^>]+>", " ", text)
        count += len(re.findall(r"[^\W_][\w'’-]*", text))
    return count


def teaching(notebook):
    lines = visible_code_lines(notebook)
    if lines > MOST_CODE_LINES:
        yield Complaint("code-lines", f"{lines} visible lines of code, want at most {MOST_CODE_LINES}; move code into a package")
    if lines == 0:
        yield Complaint("code-lines", "no visible code")
        return
    ratio = words(notebook) / lines
    if not FEWEST_WORDS_PER_LINE <= ratio <= MOST_WORDS_PER_LINE:
        yield Complaint(
            "words-per-line",
            f"{words(notebook)} words for {lines} visible lines of code are {ratio:.1f} words a line, "
            f"want {FEWEST_WORDS_PER_LINE} to {MOST_WORDS_PER_LINE}",
        )


# Rules about the run.

EXIT_STATUS = re.compile(r"^exit status \d+", re.MULTILINE)


def error_output(notebook):
    for number, cell in code_cells(notebook):
        for output in cell.get("outputs", []):
            if output["output_type"] == "error":
                message = text_of(output.get("evalue") or "") or output.get("ename", "")
                # A Go program that panics only has a status for an error; the reason is on stderr.
                panics = re.findall(r"^panic: .*", stream(cell, "stderr"), flags=re.MULTILINE)
                yield Complaint("error", (panics + message.strip().splitlines() + ["failed without a message"])[0], number)


def exit_status(notebook):
    """GoNB reports a failed shell command on stderr only, and goes on.

    A cell that failed says its status there as well, but that is known already.
    """
    for number, cell in code_cells(notebook):
        if any(output["output_type"] == "error" for output in cell.get("outputs", [])):
            continue
        found = EXIT_STATUS.search(stream(cell, "stderr"))
        if found:
            yield Complaint("exit-status", f"a command ended with {found.group()!r}", number)


def not_run(notebook):
    for number, cell in code_cells(notebook):
        if cell.get("execution_count") is None:
            yield Complaint("not-run", "the cell did not run", number)


SOURCE_RULES = (kernelspec, committed_output, absolute_path, dot_import, set_up_line)
TEACHING_RULES = (teaching,)
RUN_RULES = (error_output, exit_status, not_run)


def check(notebook, rules):
    """The complaints of all the rules about one notebook."""
    return [complaint for rule in rules for complaint in rule(notebook)]
