"""Formulas that are written in plain text, as captions and claims write them, set in HTML.

"rho_Q" becomes a rho with a subscript, "||X||" double bars, "<=" one sign: what a terminal shows in
letters a page need not. Nothing is parsed; what is no such formula stays as it is.
"""

import re

from markupsafe import Markup, escape

_GREEK = {
    **{"lambda": "λ", "Lambda": "Λ", "rho": "ρ", "sigma": "σ", "delta": "δ", "psi": "ψ"},
    **{"kappa": "κ", "gamma": "γ", "alpha": "α", "beta": "β", "theta": "θ", "tau": "τ"},
    **{"omega": "ω", "eps": "ε", "eta": "η", "mu": "μ", "nu": "ν", "pi": "π"},
}
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
    (re.compile(r"\(x\)"), "⊗"),
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
_LETTER = r"(?<![A-Za-z0-9_])((?:[A-Za-zα-ωΛ]|HFC|LFC)'?)"
_BELOW = re.compile(rf"{_LETTER}_(\{{[^{{}}]{{1,12}}\}}|[A-Za-z0-9α-ω]{{1,3}})(?![A-Za-z0-9_])")
# -1/2, eta(p), what stands in brackets, or one word; E^2/2 is half of a square.
_RAISED = r"[-−]\d/\d|[α-ω]\([a-z]\)|\([^()]{1,12}\)|\{[^{}]{1,12}\}|[-−]?[A-Za-z0-9]+"
_ABOVE = re.compile(rf"(?<=[A-Za-zα-ω0-9)\]‖|>])\^({_RAISED})")


def typeset(text: str) -> Markup:
    """HTML of a plain text, its formulas with Greek letters, signs, sub- and superscripts."""
    found = str(escape(text))
    for pattern, sign in _SIGNS:
        found = pattern.sub(sign, found)
    found = _WORD.sub(lambda match: _GREEK[match[1]], found)
    found = _BELOW.sub(lambda match: f"{match[1]}<sub>{match[2].strip('{}')}</sub>", found)
    return Markup(_ABOVE.sub(lambda match: f"<sup>{match[1].strip('{}')}</sup>", found))
