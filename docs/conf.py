"""How the book is built: `make docs`. Nothing in it asks the network, when built or when read."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_extensions"), str(HERE.parent)]
# The pages that run commands and cells run those of this checkout.
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
# Commands print tables as wide as a page of the book has room for.
os.environ["COLUMNS"] = "96"
# Kernels warn on each start that others on this machine could read what they print: it is the book.
_kernels = tempfile.TemporaryDirectory()
_profile = Path(_kernels.name) / "profile_default"
_profile.mkdir()
(_profile / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 40\n", "utf-8")
os.environ["IPYTHONDIR"] = _kernels.name

import oversmoothing  # noqa: E402

project = "oversmoothing"
author = "The oversmoothing authors"
project_copyright = author
version = release = oversmoothing.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_design",
    "sphinx_copybutton",
    "mathml_renderer",
    "claims",
    "record",
    "study",
    "commands",
    "pictures",
    "terminal",
    "docstrings",
]
exclude_patterns = ["_build", "_extensions", "jupyter_execute"]
html_math_renderer = "mathml"

myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence", "attrs_inline"]
myst_heading_anchors = 3
myst_update_mathjax = False
# X' is a formula, not an apostrophe.
smartquotes = False
nb_execution_mode = "cache"
# Cells write their files into a folder of their own, which is thrown away.
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True

autodoc_typehints = "signature"
autodoc_type_aliases = {name: name for name in ("MatrixLike", "WeightLike")}
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

html_theme = "pydata_sphinx_theme"
html_title = "oversmoothing"
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_js_files = [("book.js", {"defer": "defer"})]
html_use_index = False
html_domain_indices = False
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 8,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# A release's book can lead to the others: `.github/publish_docs.py` lays them out beneath this
# address. A book that is built here has no switcher, for that one asks the network.
if site := os.environ.get("OVERSMOOTHING_DOCS"):
    html_theme_options |= {
        "switcher": {"json_url": f"{site}/switcher.json", "version_match": release},
        "check_switcher": False,
        "show_version_warning_banner": True,
        "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
    }
