"""The site: `make docs`. Markdown by MyST, no network: fonts are the reader's, formulas are Unicode."""

from pathlib import Path

from byheart.cli.reference import page
from byheart.explore import explorer

project = "Byheart"
author = "the authors of Byheart"
copyright = author
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
html_theme = "furo"
html_title = "Byheart"
exclude_patterns = ["_build"]
highlight_language = "none"
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints = "description"


def add_help(app, docname, source):
    """Append every command's help to the page of commands."""
    if docname == "cli":
        source[0] += "\n" + page()


def add_explorer(app, failed):
    """Write the explorer beside the pages."""
    if failed is None:
        Path(app.outdir, "explorer.html").write_text(explorer([]), encoding="utf-8")


def level_captions(app, pagename, templatename, context, doctree):
    """Captions of the menu are headings without a level, which screen readers ask for."""
    menu = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = menu.replace('role="heading"', 'role="heading" aria-level="2"')


def setup(app):
    """Called by Sphinx."""
    app.connect("source-read", add_help)
    app.connect("html-page-context", level_captions, priority=900)  # after the theme's own
    app.connect("build-finished", add_explorer)
