"""Tables that fit: which columns may break their lines, and which one is the method's own."""

from docutils import nodes
from docutils.transforms import Transform

OWN = "Density Uncertainty"
LONG = 60  # letters of a line that stays whole


def lines(entry):
    """The lines of a cell; Markdown has <br> between them."""
    found = [""]
    for node in entry.findall(lambda node: isinstance(node, (nodes.Text, nodes.raw))):
        if isinstance(node, nodes.Text):
            found[-1] += node.astext()
        elif node.astext().startswith("<br"):
            found.append("")
    return found


class Columns(Transform):
    """Marks cells: "long" if a line of it has to break, "own" if it is in the column or the row of density uncertainty."""

    default_priority = 900

    def apply(self):
        for table in self.document.findall(nodes.table):
            rows = [list(row.findall(nodes.entry)) for row in table.findall(nodes.row)]
            heads = [entry.astext() for entry in rows[0]]
            for row in rows:
                own = row[0].astext() == OWN
                for head, entry in zip(heads, row):
                    if own or head == OWN:
                        entry["classes"].append("own")
                    if max(map(len, lines(entry))) > LONG:
                        entry["classes"].append("long")
            if OWN in heads[1:]:
                table["classes"].append("own-column")
