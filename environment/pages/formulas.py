"""Formulas that fit on a telephone."""

import re

from docutils import nodes
from docutils.transforms import Transform

TOKEN = re.compile(r"\\(?:begin|left)\b|\\(?:end|right)\b|\\qquad\b|\\.|[{}]", re.DOTALL)


def parts(tex):
    """The formulas that stand beside each other in tex, with the wide space \\qquad between them."""
    depth, begin, found = 0, 0, []
    for token in TOKEN.finditer(tex):
        word = token[0]
        if word in ("{", "\\begin", "\\left"):
            depth += 1
        elif word in ("}", "\\end", "\\right"):
            depth -= 1
        elif word == "\\qquad" and depth == 0:
            found.append(tex[begin : token.start()])
            begin = token.end()
    found.append(tex[begin:])
    return [part.strip() for part in found if part.strip()]


class SideBySide(Transform):
    """Makes of a displayed formula with wide spaces several, which a narrow page can show below each other."""

    default_priority = 900

    def apply(self):
        for block in list(self.document.findall(nodes.math_block)):
            pieces = parts(block.astext())
            if len(pieces) < 2 or block.get("label"):
                continue
            row = nodes.container(classes=["formulas"])
            for piece in pieces:
                copy = block.deepcopy()
                copy.children = [nodes.Text(piece)]
                row += copy
            block.replace_self(row)
