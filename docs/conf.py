"""Configuration of the site (`make docs`): Markdown by MyST, no network, the reader's fonts, formulas in Unicode."""

import io
import os
import re
from contextlib import redirect_stdout, suppress
from pathlib import Path
from unittest.mock import patch

from byheart.cli.commands import every_command
from byheart.cli.main import main
from byheart.explore import explorer

project = "Byheart"
author = "the authors of Byheart"
copyright = author
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
html_theme = "furo"
html_title = "Byheart"
html_static_path = ["look"]
html_css_files = ["pictures.css"]
exclude_patterns = ["_build", "look"]
highlight_language = "none"
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints = "description"


def help_of(command):
    """Return what ``byheart COMMAND --help`` prints on a terminal of 80 columns."""
    output = io.StringIO()
    with patch.dict(os.environ, {"COLUMNS": "80", "NO_COLOR": "1"}), redirect_stdout(output), suppress(SystemExit):
        main([*command, "--help"])
    return output.getvalue()


def page():
    """Return a section in Markdown with the help of every command."""
    sections = []
    for command in ((), *(words for words, _ in every_command())):
        heading = "#" * min(2 + len(command), 4)
        sections.append(f"{heading} {' '.join(('byheart', *command))}\n\n```text\n{help_of(command).strip()}\n```\n")
    return "\n".join(sections)


def add_help(app, docname, source):
    """Append every command's help to the page of commands."""
    if docname == "cli":
        source[0] += "\n" + page()


def add_explorer(app, failed):
    """Write the explorer beside the pages."""
    if failed is None:
        Path(app.outdir, "explorer.html").write_text(explorer([]), encoding="utf-8")


def open_to_all(app, pagename, templatename, context, doctree):
    """Give captions of the menu the level that screen readers need, and the keyboard's focus to wide elements."""
    menu = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = menu.replace('role="heading"', 'role="heading" aria-level="2"')
    body = context.get("body", "").replace("<p><img ", '<p class="picture"><img ')
    context["body"] = re.sub(r'<(pre\b|p(?= class="picture")|div(?= class="table-wrapper))', r'<\1 tabindex="0"', body)


def setup(app):
    """Connect the functions above to Sphinx's events."""
    app.connect("source-read", add_help)
    app.connect("html-page-context", open_to_all, priority=900)  # after the theme's own
    app.connect("build-finished", add_explorer)
