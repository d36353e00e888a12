"""The clip in every layer of a network with untied weights: integers in, oversmoothing out."""

from fractions import Fraction

from oversmoothing.theory.proofs.kit import J2, by, equal, exact, given, spectra

_HALF_OPEN = given.HALF_OPEN.said("every eigenvalue of the H of each layer lies in [-1, 0)")

# The smallest period, n and d; with [-1, 0] closed, I + W of (1, 2; 0, 0), (0, 0; 1, 1) also do.
_FIRST, _SECOND = exact.matrix("-1/2 0; 2 -1"), exact.matrix("-1 2; 0 -1/2")
_X0 = exact.matrix("2 0; 0 0")


def _two_layers() -> None:
    """The mean goes from (x, y) to (x/2, 2x) and to (4x, x): four times as large after every two
    layers."""
    for x, y in exact.identity(2):
        state = [[x, y], [x, y]]
        once = exact.layer(J2, _FIRST, state)
        equal(once, [[x / 2, 2 * x]] * 2)
        equal(exact.layer(J2, _SECOND, once), [[4 * x, x]] * 2)


def _differences() -> None:
    """A averages, so differences never change: A (v, -v) = 0."""
    for H in (_FIRST, _SECOND):
        for difference in exact.identity(2):
            state = [difference, [-x for x in difference]]
            equal(exact.layer(J2, H, state), state)


def _ratios() -> None:
    """HFC^2 = 2 for ever while LFC^2 = 34 16^(k-1) after 2k layers: the ratio falls by 4 every two
    layers, for every X_0 whose mean has x != 0."""
    X = _X0
    for k in range(1, 13):
        X = exact.layer(J2, _SECOND, exact.layer(J2, _FIRST, X))
        power = 4 ** (k - 1)
        equal(X, [[4 * power + 1, power], [4 * power - 1, power]])
        equal(exact.squared_norms(X), (2, 2 * 17 * power**2))


CLAIM = by.refuted(
    name="P-2401.04301v3-clip-untied",
    statement="H_l = V_l diag(clip(psi_l, [-1, 0])) V_l^-1 in each layer l, weights differing by "
    "layer, prevents oversmoothing (our reading: v3 trains the reparameterisation in networks "
    "whose layers have their own weights; its theory fixes A and H).",
    latex=r"\mathrm{spec}(H_l) \subset [-1,0)\ \forall l \implies "
    r"\mathrm{HFC}/\mathrm{LFC} \not\to 0",
    source="arXiv 2401.04301 v3, reparameterisation (public summary), our reading for untied "
    "layers",
    wording="our reading, without the paper's hypothesis of the same weights in every layer (a "
    "public summary): its theorems are not touched",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_A, given.EIGENBASIS_H, _HALF_OPEN),
    title="two layers in turn",
    at=((J2, _FIRST, _X0), (J2, _SECOND, _X0)),
    steps=(
        by.Step(
            "Both H have the eigenvalues -1 and -1/2.",
            lambda: equal(
                (spectra.values(_FIRST), spectra.values(_SECOND)), ([-1, Fraction(-1, 2)],) * 2
            ),
        ),
        _differences,
        _two_layers,
        _ratios,
    ),
    repaired_by="T7b-certificate",
    further="Here tau(A) = 0, so p > tau q does not help: the V_l are not orthogonal. For "
    "symmetric H_l it does (T7b-certificate), and without it they fail too "
    "(P-2401.04301v1-untied).",
    formal=by.Formal("Refutations.v3_clip_untied", (1,)),
)
