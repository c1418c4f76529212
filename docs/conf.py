"""How Sphinx makes a site of the documents and of the docstrings: `make docs`."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, cast

from docs import modules

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]

project, author = "wsc", "the authors of wsc"
extensions = ["sphinx.ext.autodoc", "numpydoc", "myst_nb"]
root_doc = "docs/index"
include_patterns = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/**.md",
    "docs/**.ipynb",
    "docs/modules/**.rst",
]
exclude_patterns = [".venv", ".git", "runs", "figures", "site", "tests", "docs/**/runs", "docs/**/figures"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb", ".rst": "restructuredtext"}
nb_execution_mode = "off"
default_role = "code"
myst_heading_anchors = 4
autodoc_default_options = {"member-order": "bysource", "no-value": True, "exclude-members": "set"}
"""Matplotlib writes a method `set` into every class of figures."""
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
python_maximum_signature_line_length = 100
toc_object_entries_show_parents = "hide"
suppress_warnings = ["ref.python"]
"""Types in signatures are linked by their last name, which several modules may have."""
html_theme = "furo"
html_title = "wsc"
html_show_sphinx = False
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["notebooks.css"]


def setup(app: "Sphinx") -> dict[str, bool]:
    """Write the pages of the modules before Sphinx looks for pages, and let bars in docstrings be bars."""
    modules.write(ROOT, ROOT / "docs/modules")
    app.connect("autodoc-process-docstring", _bars, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _bars(*given: object) -> None:
    """Escape the bars of absolute values, which Sphinx would take for names; examples stay as they are."""
    lines = cast("list[str]", given[-1])
    text = "\n".join(lines)
    before, heading, examples = text.partition(".. rubric:: Examples")
    escaped = re.sub(r"(?<![|`])\|(?![|`])", r"\\|", before)
    lines[:] = (escaped + heading + examples).split("\n")
