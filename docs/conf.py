"""Configuration of the documentation; 'make docs' builds it."""

import os
import sys
from importlib.metadata import version as installed
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "featavg"
author = "The featavg developers"
copyright = author  # noqa: A001 - the name that Sphinx reads
version = release = installed("featavg")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_proof",
    "sphinxcontrib.bibtex",
    "ivars",
    "run_numbers",
    "plainmath",
    "gallery",
]
exclude_patterns = ["_build", "_vendor", "notebooks/generated"]
root_doc = "index"
templates_path = ["_templates"]

# Where the numbers come from: what 'make reproduce' leaves.
featavg_runs = str((HERE.parent / os.environ.get("FEATAVG_RUNS", "runs")).resolve())

# Markdown with formulas, and names of code that are links wherever they are known.
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
default_role = "py:obj"
suppress_warnings = ["ref.python"]  # an argument that is called as attributes elsewhere are

# The reference: docstrings after numpydoc.
autosummary_generate = True
autodoc_typehints = "none"
# Reading a docstring needs no PyTorch.
autodoc_mock_imports = [name for name in ("torch", "lightning_fabric") if find_spec(name) is None]
autodoc_member_order = "bysource"
napoleon_numpy_docstring, napoleon_google_docstring = True, False
napoleon_use_ivar = True
napoleon_use_rtype = False

bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "plain"
proof_minimal_theme = True

html_theme = "furo"
html_title = f"featavg {release}"
html_static_path = ["_static"]
html_css_files = ["featavg.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5394", "color-brand-content": "#0b5394"},
    "dark_css_variables": {"color-brand-primary": "#8ec5ff", "color-brand-content": "#8ec5ff"},
}

# MathJax comes from docs/_vendor, so that pages work without a network.
if (HERE / "_vendor" / "mathjax" / "tex-svg-full.js").is_file():
    html_static_path.append("_vendor")
    html_math_renderer = "mathjax"
    mathjax_path = "mathjax/tex-svg-full.js"
    mathjax3_config = {"svg": {"fontCache": "global"}, "options": {"enableMenu": False}}
else:
    html_math_renderer = "plain"
