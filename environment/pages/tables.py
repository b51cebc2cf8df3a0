"""Tables that fit and can be read: which columns may break their lines, which one is the method's own, headings of groups of rows, and coloured marks."""

import re

from docutils import nodes
from docutils.transforms import Transform

OWN = "Density Uncertainty"
LONG = 60  # letters of a line that stays whole
MARKS = {"▲": "better", "▽": "worse"}


def is_group(row):
    """Whether a row is the heading of a group of rows: a name in bold, and nothing else."""
    first, *others = row
    return bool(others) and bool(first.astext()) and not any(entry.astext() for entry in others) and any(first.findall(nodes.strong))


class Columns(Transform):
    """Makes headings of groups go over all columns, and marks cells: "long" if it has to break, "own" if it is in the column or the row of density uncertainty."""

    default_priority = 900

    def apply(self):
        for table in self.document.findall(nodes.table):
            rows = [list(row.findall(nodes.entry)) for row in table.findall(nodes.row)]
            heads = [entry.astext() for entry in rows[0]]
            for row in rows:
                if is_group(row):
                    row[0]["morecols"] = len(row) - 1
                    row[0]["classes"].append("group")
                    for entry in row[1:]:
                        entry.parent.remove(entry)
                    continue
                own = row[0].astext() == OWN
                for head, entry in zip(heads, row):
                    if own or head == OWN:
                        entry["classes"].append("own")
                    if len(entry.astext()) > LONG:
                        entry["classes"].append("long")
            if OWN in heads[1:]:
                table["classes"].append("own-column")


class Marks(Transform):
    """Gives the marks of verdicts, in tables and below them, their colours and their names for who hears them."""

    default_priority = 910  # Columns counts letters

    def apply(self):
        for text in list(self.document.findall(nodes.Text)):
            parts = re.split(f"([{''.join(MARKS)}])", text.astext())
            if len(parts) > 1 and not isinstance(text.parent, (nodes.literal, nodes.literal_block, nodes.raw)):
                spans = (f'<span class="{MARKS[part]}" role="img" aria-label="{MARKS[part]}">{part}</span>' if part in MARKS else part for part in parts)
                made = [nodes.raw("", part, format="html") if part.startswith("<span class") else nodes.Text(part) for part in spans if part]
                text.parent.replace(text, made)
