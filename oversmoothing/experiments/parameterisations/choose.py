"""The forms of H by name.

free                        any matrix; anywhere; no guarantee
plus                        Q diag(psi^2) Q^T (v1, ViT+); h >= 0; tied weights: smooths
minus                       Q diag(-psi^2) Q^T (v1, ViT-); h <= 0; no guarantee
clip-minus, clip-plus       V diag(clip psi) V^-1 (v3); [-1, 0], [0, 1]; tied weights
sigmoid-minus, -plus        the same with a sigmoid; [-1, 0), (0, 1]; tied weights
disc                        -(I - K)/2, ||K|| < 1 (T3c); |h + 1/2| < 1/2; tied weights
interval                    symmetric (T3b); (-s, 0), s measured; tied weights, that attention
band                        symmetric (T7b); [-q, -p]; weights that differ, while tau < p/q
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from oversmoothing.experiments.parameterisations.band import Band
from oversmoothing.experiments.parameterisations.clipped import Clipped, Sigmoid
from oversmoothing.experiments.parameterisations.disc import Disc
from oversmoothing.experiments.parameterisations.form import Form, ValueProjection
from oversmoothing.experiments.parameterisations.free import Free
from oversmoothing.experiments.parameterisations.interval import MeasuredInterval
from oversmoothing.experiments.parameterisations.signed import Signed
from oversmoothing.theory.support.errors import InputError, whole_number

FORMS: dict[str, Callable[..., Form]] = {
    "free": Free,
    "plus": partial(Signed, +1),
    "minus": partial(Signed, -1),
    "clip-plus": partial(Clipped, +1),
    "clip-minus": partial(Clipped, -1),
    "sigmoid-plus": partial(Sigmoid, +1),
    "sigmoid-minus": partial(Sigmoid, -1),
    "disc": Disc,
    "interval": MeasuredInterval,
    "band": Band,
}
OPTIONS = {"band": ("p", "q")}


def parameterisation(name: str, **options: Any) -> Form:
    """The form of H by its name, for `torch.nn.utils.parametrize.register_parametrization`.

    options: p and q of the band. `.guarantee` says what is promised, for which weights and which
    attention, by which statement; `.inside(H)` whether an H lies in its region.

        layer = nn.Linear(4, 4, bias=False)  # its weight is H
        form = oversmoothing.parameterisation("band", p=0.6)
        parametrize.register_parametrization(layer, "weight", form)

    Raises `InputError` for an unknown form or option.
    """
    if not isinstance(name, str) or name not in FORMS:
        raise InputError(f"unknown form of H {name!r}: choose one of {', '.join(FORMS)}")
    taken = OPTIONS.get(name, ())
    for option in options:
        if option not in taken:
            known = f"it takes {', '.join(taken)}" if taken else "it takes none"
            raise InputError(f"the form '{name}' has no option '{option}': {known}")
    return FORMS[name](**options)


def value_projection(form: str, width: int, **options: Any) -> ValueProjection:
    """H [width, width] as a module: `forward()` gives H, `inside()` says whether it lies in its
    region. Its parameters are not drawn yet: `initialise` draws them, `start_at` takes an H.

    Raises `InputError` for an unknown form or option, and a width that is none.
    """
    return ValueProjection(parameterisation(form, **options), whole_number("width", width, 1))
