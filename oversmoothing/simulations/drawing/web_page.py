"""A template of a page, set into the frame that all pages share: one file that asks no network.

Formulas that are written in plain text, as captions and claims write them, are set in HTML:
"rho_Q" becomes a rho with a subscript, "||X||" double bars, "<=" one sign: what a terminal shows
in letters a page need not. Nothing is parsed; what is no such formula stays as it is.
"""

import base64
import json
import re
from collections.abc import Iterable
from importlib import resources
from typing import Any

from jinja2 import DictLoader, Environment
from markupsafe import Markup, escape

from oversmoothing.simulations.drawing.picture import PALETTE

_HOME = "oversmoothing.simulations.drawing"
# What every page has; beside them a page names its own.
_STYLE, _SCRIPTS = "page.css", ("page.js", "charts.js", "tables.js", "claims.js")


def web_page(
    package: str,
    template: str,
    *,
    style: str | None = None,
    scripts: Iterable[str] = (),
    **values: Any,
) -> str:
    """The template of a package (it extends "frame"), with its style and scripts within it.

    The shared style and scripts (the name `Page`) stand in front of the page's own; style: a file
    of the package, or none.
    """
    loader = DictLoader(
        {"page": _text(package, template)}
        | {name: _text(_HOME, f"{name}.html") for name in ("frame", "claims")}
    )
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["typeset"] = typeset
    colours = "".join(f"--{name}: {colour}; " for name, colour in PALETTE.items())
    parts = [_text(_HOME, name) for name in _SCRIPTS] + [_text(package, name) for name in scripts]
    own = "" if style is None else _text(package, style)
    return environment.get_template("page").render(
        css=Markup(f":root {{ {colours}}}\n{_text(_HOME, _STYLE)}\n{own}"),
        script=Markup("\n".join(parts)),
        **values,
    )


def as_data(value: Any) -> Markup:
    """JSON to stand in a script element: no letter of it can end or open one."""
    return Markup(json.dumps(value, allow_nan=False).replace("<", "\\u003c"))


def as_link(picture: bytes, kind: str = "png") -> str:
    """A picture as the address of an image within the page."""
    return f"data:image/{kind};base64," + base64.b64encode(picture).decode("ascii")


def _text(package: str, name: str) -> str:
    return (resources.files(package) / name).read_text("utf-8")


_GREEK = {
    **{"lambda": "λ", "Lambda": "Λ", "rho": "ρ", "sigma": "σ", "delta": "δ", "psi": "ψ"},
    **{"kappa": "κ", "gamma": "γ", "alpha": "α", "beta": "β", "theta": "θ", "tau": "τ"},
    **{"omega": "ω", "eps": "ε", "eta": "η", "mu": "μ", "nu": "ν", "pi": "π", "chi": "χ"},
}
# Words that are signs where an index stands below them.
_LARGE = {"sum": "∑", "prod": "∏", "int": "∫", "Pi": "Π", "Sigma": "Σ", "Sig": "Σ"}
# Names of a program, which no formula is: Dynamics.vec_layer, NON_SMOOTHING, a path.
_NAMES = re.compile(r"\b(?:[A-Z]\w*\.\w+|[A-Za-z]{2,}(?:_[A-Za-z0-9]{2,})+|\w+(?:/\w+)+\.py)\b")
# In escaped text, in this order.
_SIGNS = (
    # Two moduli side by side are no norm.
    (re.compile(r"(?<!\|)\|([^|\s]{1,6})\|\|([^|\s]{1,6})\|(?!\|)"), r"|\1| |\2|"),
    (re.compile(r"\|\|"), "‖"),
    (re.compile(r"!="), "≠"),
    (re.compile(r"&lt;-&gt;"), "↔"),
    (re.compile(r"&lt;=&gt;"), "⇔"),
    (re.compile(r"&lt;="), "≤"),
    (re.compile(r"&gt;="), "≥"),
    (re.compile(r"(?<!-)-&gt;"), "→"),
    (re.compile(r"(?<=\s)\(x\)(?=\s)"), "⊗"),
    # A hat stands behind its letter.
    (re.compile(r"(?<![A-Za-z])([A-Za-z])\^(?=[\s^,.;:)_]|$)"), "\\1\u0302"),
    (re.compile(r"\+-"), "±"),
    (re.compile(r"\bsqrt\("), "√("),
    (re.compile(r"\bsqrt (?=[a-z]\b)"), "√"),
    # The sign of a number or of a letter: after nothing, a space, a bracket or another sign.
    (re.compile(r"(?<![^\s(\[{|‖=≤≥,/])-(?=[\d.(A-Za-zλμρπ|])"), "−"),
    (re.compile(r"(?<=\s)-(?=\s)"), "−"),
    # Between a number or one letter and another; not within words such as rank-1.
    (re.compile(r"(?<=\d)-(?=[a-z|(])(?![a-z]{2})"), "−"),
    (re.compile(r"(?<=\b[a-z])-(?=\d\b)"), "−"),
)
_WORD = re.compile(rf"(?<![A-Za-z])({'|'.join(_GREEK)})(?![A-Za-z])")
_LETTER = (
    r"(?<![A-Za-z0-9_])((?:[A-Za-zα-ωΛ]\u0302?|HFC|LFC|sum|prod|int|max|min|Pi|Sigma|Sig)['*]?)"
)
_NESTED = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"
_BELOW = re.compile(
    rf"{_LETTER}_(\{{[^{{}}]{{1,12}}\}}|\([^()]{{1,12}}\)|[A-Za-z0-9α-ω]{{1,4}}|[-+−](?![\w(]))"
    r"(?![A-Za-z0-9_])"
)
# -1/2, eta(p), what stands in brackets, or one word; E^2/2 is half of a square.
_RAISED = rf"[-−]\d/\d|[α-ω]\([a-z]\)|{_NESTED}|\{{[^{{}}]{{1,40}}\}}|[-−]?[A-Za-z0-9α-ω]+"
_ABOVE = re.compile(rf"(?<=[A-Za-zα-ω0-9)\]‖|>*;\u0302])\^({_RAISED})")


# What stands between two backticks is typed as it is.
_CODE = re.compile(r"`([^`]+)`")


def typeset(text: str) -> Markup:
    """HTML of a plain text, its formulas with Greek letters, signs, sub- and superscripts, and what
    stands between backticks as code."""
    parts = enumerate(_CODE.split(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if k % 2 else _plain(part) for k, part in parts
    )


def _plain(text: str) -> Markup:
    html, end = "", 0
    for name in _NAMES.finditer(text):
        if name[0].split("_")[0] not in _GREEK:
            html += _formulas(text[end : name.start()]) + str(escape(name[0]))
            end = name.end()
    return Markup(html + _formulas(text[end:]))


def _formulas(text: str) -> str:
    html = str(escape(text))
    for pattern, sign in _SIGNS:
        html = pattern.sub(sign, html)
    html = _WORD.sub(lambda match: _GREEK[match[1]], html)
    html = _BELOW.sub(_lowered, html)
    return _ABOVE.sub(lambda match: f"<sup>{match[1].strip('{}')}</sup>", html)


def _lowered(match: re.Match[str]) -> str:
    below = match[2]
    if below[0] == "(":
        below = below[1:-1]
    return f"{_LARGE.get(match[1], match[1])}<sub>{below.strip('{}')}</sub>"
