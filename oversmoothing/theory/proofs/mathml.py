"""LaTeX to MathML, which browsers set by themselves: no script, no font from elsewhere.

latex2mathml translates; what MathML Core leaves out (mathvariant but "normal") becomes the Unicode
letters that it stood for, and a command that was not understood is an error, never a red word.
"""

import re
import unicodedata
from itertools import zip_longest
from xml.etree import ElementTree

from latex2mathml.converter import convert

_NAMESPACE = "http://www.w3.org/1998/Math/MathML"
_ALPHABETS = {
    "bold": "MATHEMATICAL BOLD",
    "double-struck": "MATHEMATICAL DOUBLE-STRUCK",
    "fraktur": "MATHEMATICAL FRAKTUR",
    "script": "MATHEMATICAL SCRIPT",
}
_BRACKETS = dict.fromkeys("([{", "prefix") | dict.fromkeys(")]}", "postfix")
_LETTERS = {"\u221e", "\u22a4", "\u2026", "\u22ef"}  # infinity, transposed, dots: no space around
_SIGNS = {"-", "\u2212", "+"}
_CLOSING = {")", "]", "}", "|", "\u2016", "!"}
_WITH_LIMITS = {"lim", "liminf", "limsup", "max", "min", "sup", "inf"}
# What latex2mathml has no word for; and brackets of a fixed size, which stretch here.
_SPELLED = (
    (re.compile(r"\\[bB]igg?l(?![a-zA-Z])|\\[bB]igg?(?=[(\[])"), r"\\left"),
    (re.compile(r"\\[bB]igg?r(?![a-zA-Z])|\\[bB]igg?(?=[)\]])"), r"\\right"),
    (re.compile(r":="), "\u2254"),
    (re.compile(r"\\sim(?![a-zA-Z])"), "\u223c"),
    (re.compile(r"\\arg(?![a-zA-Z])"), r"\\operatorname{arg}"),
    (re.compile(r"\\not\\to(?![a-zA-Z])"), r"\\nrightarrow"),
    (re.compile(r"\\begin\{aligned\}"), r"\\begin{array}{rl}"),
    (re.compile(r"\\end\{aligned\}"), r"\\end{array}"),
)


def mathml(latex: str, display: bool = False) -> str:
    """The formula as one `<math>` element.

    Raises `ValueError` for a command or a construction that it does not know.
    """
    source = latex.strip()
    for pattern, spelled in _SPELLED:
        source = pattern.sub(spelled, source)
    try:
        root = ElementTree.fromstring(convert(source, display="block" if display else "inline"))
    except Exception as error:  # the converter's have no class in common
        said = str(error) or type(error).__name__
        raise ValueError(f"no MathML for {latex!r}: {said}") from error
    for element in root.iter():
        _amend(element, latex)
    for element in root.iter():
        _space_operators(list(element), display)
    ElementTree.register_namespace("", _NAMESPACE)
    return ElementTree.tostring(root, encoding="unicode")


def _amend(element: ElementTree.Element, latex: str) -> None:
    """Letters of an alphabet as such, signs and log as operators; nothing that is LaTeX still."""
    text = element.text or ""
    if "\\" in text:
        raise ValueError(f"no MathML for {text!r} in {latex!r}")
    variant = element.get("mathvariant")
    if variant is not None and variant != "normal":
        element.text = "".join(_lettered(character, variant, latex) for character in text)
        del element.attrib["mathvariant"]
    sign = unicodedata.category(text[:1] or "x") == "Sm" or (len(text) > 1 and text.isalpha())
    if element.tag.endswith("}mi") and sign:
        element.tag = f"{{{_NAMESPACE}}}mo"
    if text in _LETTERS:
        element.tag = f"{{{_NAMESPACE}}}mi"
    if text in {"|", "\u2016", "/"}:
        element.set("lspace", "0")
        element.set("rspace", "0")
    if text in _BRACKETS and element.get("form") is None:
        element.set("form", _BRACKETS[text])


def _lettered(character: str, variant: str, latex: str) -> str:
    if variant not in _ALPHABETS:
        raise ValueError(f"no alphabet {variant!r} for {latex!r}")
    # "SMALL A" of "LATIN SMALL LETTER A"; "DIGIT ONE".
    kind = re.sub("LATIN | LETTER", "", unicodedata.name(character))
    for name in (f"{_ALPHABETS[variant]} {kind}", f"{variant.upper()} {kind}"):
        try:
            return unicodedata.lookup(name)
        except KeyError:
            continue
    raise ValueError(f"no {variant} {character!r} for {latex!r}")


def _space_operators(siblings: list[ElementTree.Element], display: bool) -> None:
    """As TeX spaces: log and max tight before a bracket, limits below, a sign after a relation."""
    before = None
    for element, follower in zip_longest(siblings, siblings[1:]):
        if (
            element.text in _SIGNS
            and before is not None
            and before.tag.endswith("}mo")
            and before.text not in _CLOSING
        ):
            element.set("form", "prefix")
        before = element
        scripted = element.tag.endswith(("}msub", "}msup", "}munder"))
        base = element[0] if scripted else element
        word = (base.text or "").replace(" ", "")
        if base.tag.endswith("}mo") and word.isalpha() and len(word) > 1:
            bracket = follower is not None and follower.text in {"(", "[", "{"}
            base.set("lspace", "0.1667em")
            base.set("rspace", "0" if bracket else "0.1667em")
            if display and word in _WITH_LIMITS and element.tag.endswith("}msub"):
                element.tag = f"{{{_NAMESPACE}}}munder"
