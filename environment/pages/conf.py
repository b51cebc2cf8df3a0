"""Settings of Sphinx, which makes the pages. Those that differ from run to run are in cli.py."""

extensions = ["myst_nb", "sphinx_design"]
html_theme = "furo"
html_title = "Density uncertainty layers"
html_css_files = ["pages.css"]
html_js_files = ["pages.js"]
html_show_sourcelink = False
html_show_copyright = False
html_copy_source = False
html_use_index = False
templates_path = ["templates"]

# The notebooks were run before; here they are only shown.
nb_execution_mode = "off"
nb_merge_streams = True
nb_render_markdown_format = "myst"
nb_number_source_lines = False
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 3
# Cells of GoNB have lines, as %%, that are not Go.
suppress_warnings = ["misc.highlighting_failure"]

# Formulas are drawn with outlines, not with fonts: browsers do not load fonts for a page that is a file.
mathjax_path = "tex-svg.js"
mathjax3_config = {"svg": {"fontCache": "global"}}
