"""Tests of the pages in out/test: python environment/pages/test_pages.py, after ./environment/test has made them.

How they look is for the tests in a browser.
"""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "out" / "test" / "html"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
NEEDED = re.compile(r'<(?:script|img|link|source)\b[^>]*?(?:src|href)="([^"#?]+)')
LINKS = re.compile(r'<a\b[^>]*?href="([^"#?]+)')


class Pages(unittest.TestCase):
    def test_any_static_host(self):
        """Every file that a page needs or links to lies beside it, under a relative address."""
        pages = sorted(HTML.rglob("*.html"))
        self.assertGreater(len(pages), len(NOTEBOOKS))
        for path in pages:
            page = path.read_text()
            self.assertIn("live.html" if path.name != "live.html" else "index.html", page)
            links = [link for link in LINKS.findall(page) if not link.startswith("https://")]
            for address in {*NEEDED.findall(page), *links}:
                if not address.startswith("data:"):
                    with self.subTest(page=path.name, address=address):
                        self.assertTrue((path.parent / address).is_file())

    def test_first_page(self):
        """It has each notebook, the live page and Figure 1, and is small."""
        page = (HTML / "index.html").read_text()
        article = page[page.index("<article") :]
        for address in ("live.html", "figures/README.html", "_images/figure1.png", *(f"notebooks/{path.stem}.html" for path in NOTEBOOKS)):
            self.assertIn(f'"{address}"', article)
        size = len(page) + sum((HTML / address).stat().st_size for address in set(NEEDED.findall(page)) if not address.startswith("data:"))
        self.assertLess(size, 1.5e6)

    def test_what_cells_show(self):
        """Notebooks have the outputs of their run, and not the text of slides."""
        page = (HTML / "notebooks" / "01_figure1.html").read_text()
        for text in ("data:image/svg+xml", "gap ratio", "<td"):
            self.assertIn(text, page)
        self.assertNotIn("Of the four only", page)


if __name__ == "__main__":
    unittest.main(verbosity=2)
