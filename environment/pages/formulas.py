"""Formulas that fit on a telephone."""

import re

from docutils import nodes
from docutils.transforms import Transform

TOKEN = re.compile(r"\\(?:begin|left)(?![a-zA-Z])|\\(?:end|right)(?![a-zA-Z])|\\[a-zA-Z]+|\\.|:=|[{}=]", re.DOTALL)
SPACES = {"\\quad", "\\qquad"}
RELATIONS = {"=", ":=", "\\ge", "\\geq", "\\le", "\\leq", "\\approx", "\\propto"}
WIDE = 40  # letters and signs that fit on a telephone


def split(tex, separators):
    """The parts of tex between separators that are in no braces and no environment, each but the first with its separator."""
    depth, begin, found = 0, 0, []
    for token in TOKEN.finditer(tex):
        word = token[0]
        if word in ("{", "\\begin", "\\left"):
            depth += 1
        elif word in ("}", "\\end", "\\right"):
            depth -= 1
        elif word in separators and depth == 0:
            found.append(tex[begin : token.start()])
            begin = token.start()
    return [*found, tex[begin:]]


def width(tex):
    """About how many letters and signs a formula shows."""
    return len(re.sub(r"\\(?:[a-zA-Z]+|.)|[{}^_&\s]", lambda found: "x" if len(found[0]) > 2 else "", tex))


def parts(tex):
    """The parts of a displayed formula that may stand below each other, and whether a wide space is before each."""
    found = []
    for part in split(tex, SPACES):
        space = next((word for word in sorted(SPACES) if part.startswith(word)), "")
        part = part[len(space) :].strip()
        pieces = split(part, RELATIONS) if width(part) > WIDE else [part]
        # The space before a relation is that after a formula, here an empty one.
        found += [(("{} " if number else "") + piece.strip(), bool(space) and number == 0) for number, piece in enumerate(pieces) if piece.strip()]
    return found


class SideBySide(Transform):
    """Makes of a long displayed formula several, which a narrow page can show below each other."""

    default_priority = 900

    def apply(self):
        for block in list(self.document.findall(nodes.math_block)):
            pieces = parts(block.astext())
            if len(pieces) < 2 or block.get("label"):
                continue
            row = nodes.container(classes=["formulas"])
            for piece, space in pieces:
                copy = block.deepcopy()
                copy.children = [nodes.Text(piece)]
                row += nodes.container("", copy, classes=["space"] if space else [])
            block.replace_self(row)
