"""Settings of Sphinx, which makes the pages."""

import re
from importlib import metadata
from pathlib import Path

extensions = ["myst_nb", "sphinx_design"]
exclude_patterns = ["**/prose.md"]
project = html_title = "Density uncertainty layers"
html_theme = "furo"
# MathJax lies beside the pages, so that they need no network.
html_static_path = ["pages.css", "pages.js", *(str(file.locate()) for file in metadata.files("sphinx-mathjax-offline") if file.name == "tex-svg.js")]
html_css_files, html_js_files = ["pages.css"], ["pages.js"]
templates_path = ["templates"]
# The packages that each notebook imports, to which its page links.
packages = {f"notebooks/{path.stem}": re.findall(r'^ *"\\t\\"densityuncertainty/([\w/]+)\\"', path.read_text(), re.MULTILINE) for path in Path(__file__).parents[2].glob("notebooks/*.ipynb")}
html_context = {"packages": packages}
html_copy_source = html_show_copyright = html_use_index = False

# The notebooks were run before; here they are only shown.
nb_execution_mode = "off"
nb_merge_streams = True
nb_render_markdown_format = "myst"
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 3
# Cells of GoNB have lines, as %%, that are not Go.
suppress_warnings = ["misc.highlighting_failure"]

# Formulas are drawn with outlines, not with fonts: browsers do not load fonts for a page that is a file.
mathjax_path = "tex-svg.js"
mathjax3_config = {"svg": {"fontCache": "global"}}
