"""T10: discs hold the spectrum of everything that rounds to a matrix, and of the matrix itself.

As FLINT tests its enclosures: the answer is chosen exactly and the input built from it. A failure
or UNDECIDED is legal, a wrong inclusion never is.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import flint
import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

import oversmoothing
from oversmoothing.theory.layer.attention import quotient
from oversmoothing.theory.layer.layer import Layer
from oversmoothing.theory.numbers.rounding import UNIT, Bounded, at_precision
from oversmoothing.theory.spectra.discs import (
    Discs,
    Failure,
    components,
    eigenvector,
    enclose,
    enclose_all,
)
from oversmoothing.theory.spectra.layer_discs import (
    attention_discs,
    attention_discs_all,
    consensus_radius,
    eigenvalues,
    head_discs,
    normalised,
    quotient_radius,
    quotient_within,
)
from oversmoothing.theory.verdict.by_discs import cell_discs, decide_cell, decide_stack
from oversmoothing.theory.verdict.formulas import Outcome, outcome_of_sign
from oversmoothing.theory.verdict.stages import certify_spectra, decide
from tests.support.cases import cases
from tests.support.refusals import refuses
from tests.support.tables import fractions_of, rational

Pair = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Chosen:
    """M [k, k] is the nearest matrix in binary64 to one of exactly this spectrum: (re, im) [k]."""

    M: np.ndarray
    spectrum: list[Pair]


def chosen(seed: int, k: int, scale: int = 3 << 20) -> Chosen:
    """Under k to 3 k elementary similarities, by seed % 5: eigenvalues drawn apart, turning ones,
    Jordan blocks, the same of neighbours, repeated ones without a chain. Integers over scale."""
    rng = np.random.default_rng([seed, k])
    D, spectrum, i = np.zeros((k, k), dtype=object), list[Pair](), 0
    kind = seed % 5
    while i < k:
        x = int(rng.integers(-2 * scale, 2 * scale))
        size = int(min(k - i, rng.integers(1, 4)))
        if kind == 1 and size >= 2:  # a pair x +- iy
            y = int(rng.integers(1, scale))
            D[i : i + 2, i : i + 2] = [[x, y], [-y, x]]
            spectrum += [(Fraction(x, scale), Fraction(s * y, scale)) for s in (1, -1)]
            i += 2
            continue
        for p in range(i, i + size):
            # Neighbours are as near as the scale allows.
            D[p, p] = x + (p - i) * (kind == 3 or (kind == 4 and seed % 2))
            if p > i and kind in (2, 3):
                D[p - 1, p] = scale if seed % 2 else 1
            if p > i and kind in (0, 1):
                D[p, p] = int(rng.integers(-2 * scale, 2 * scale))
            spectrum.append((Fraction(int(D[p, p]), scale), Fraction(0)))
        i += size
    for _ in range(int(rng.integers(k, 3 * k + 1)) if k > 1 else 0):
        p, q = rng.choice(k, 2, replace=False)
        factor = int(rng.integers(-2, 3))
        D[p] = D[p] + factor * D[q]
        D[:, q] = D[:, q] - factor * D[:, p]
    return Chosen(np.array([[float(int(x) / scale) for x in row] for row in D]), spectrum)


def held(found, spectrum: list[Pair]) -> bool:
    """Whether each component of these discs holds as many of the numbers as it has discs."""
    centres = [(Fraction(z.real), Fraction(z.imag)) for z in found.centres.tolist()]
    radii = [Fraction(r) ** 2 for r in found.radii.tolist()]
    count = np.zeros(len(found), dtype=int)
    for re, im in spectrum:
        near = np.abs(found.centres - complex(re, im)) <= found.radii * 1.001 + 1e-9
        homes = {
            int(found.component[i])
            for i in np.flatnonzero(near)
            if (centres[i][0] - re) ** 2 + (centres[i][1] - im) ** 2 <= radii[i]
        }
        if len(homes) != 1:
            return False
        count[homes.pop()] += 1
    return bool((count[: found.component.max() + 1] == np.bincount(found.component)).all())


@cases(
    "seed, k",
    *((seed, 1 + (7 * seed) % 24) for seed in range(60)),
    (0, 64),
    (1, 128),
    (4, 200),
    (0, 512),
)
def test_T10_each_component_holds_as_many_chosen_eigenvalues_as_it_has_discs(seed, k):
    """The exact matrix is within half a unit in the last place of the rounded one; of a small one
    whose eigenvalues are drawn apart there are discs, and narrow ones."""
    case = chosen(seed, k)
    found = enclose(case.M, UNIT * np.abs(case.M))
    assert isinstance(found, Failure) or held(found, case.spectrum)
    if seed % 5 == 0 and k <= 8:
        assert not isinstance(found, Failure) and found.radii.max() < 1e-6


@pytest.mark.parametrize("relative", [UNIT, 2.0**-24])
@pytest.mark.parametrize("seed", range(20))
def test_T10_the_radii_bound_the_exact_similarity_of_every_matrix_within_the_error(seed, relative):
    """P^-1 M' P = D + E in fractions: the row sums of |E| in complex form."""
    rng = np.random.default_rng(seed)
    M = chosen(seed, 2 + seed % 5).M
    error = relative * np.abs(M)
    found = enclose_all(M[None], error[None], keep=True)[0]
    if isinstance(found, Failure) or found.basis is None:
        return
    z, k = found.centres, len(M)
    moved = fractions_of(M) + rng.choice([-1, 1], (k, k)) * fractions_of(error)
    P = rational(found.basis[0].tolist())
    E = P.inv() * rational(moved.tolist()) * P
    D = np.diag(z.real).astype(object)
    partner = np.arange(k) + np.sign(z.imag).astype(int)
    for p, q in enumerate(partner.tolist()):
        if p != q:
            D[p, q] = z.imag[p]
    gap = (E - rational(D.tolist())).tolist()
    size = np.array([[abs(float(x)) for x in row] for row in gap])
    pair = z.imag != 0
    rows = size @ np.where(pair, 2.0, 1.0)
    rows = np.where(pair, (rows + rows[partner]) / 2, rows)
    assert (rows <= found.radii).all()


@pytest.mark.parametrize("seed", range(0, 60, 5))
def test_T10_vectors_of_a_disc_that_is_alone_are_within_their_bounds(seed):
    """M v - lambda v and w M - lambda w over all that the bounds allow hold 0, in balls."""
    M = chosen(seed, 3 + seed % 7).M
    error = UNIT * np.abs(M)
    found = enclose(M, error)
    if isinstance(found, Failure):
        return
    seen, within = 0, Bounded(M, error)
    with at_precision(300):
        exact = flint.acb_mat([[flint.acb(x) for x in row] for row in M.tolist()])
        values, left, right = exact.eig(algorithm="approx", left=True, right=True)
        for i in np.flatnonzero(found.alone).tolist():
            z = flint.acb(complex(found.centres[i]))
            place = min(range(len(M)), key=lambda j: float(abs(values[j] - z).mid()))
            for which, vector in (
                (eigenvector(within, found, i), [right[p, place] for p in range(len(M))]),
                (eigenvector(within.T, found, i), [left[place, p] for p in range(len(M))]),
            ):
                if which is None:
                    continue
                seen += 1
                middle, off = which.value, which.error
                # The same scale: fitted at the entry that is best known.
                p = int(np.argmax(np.abs(middle) - off))
                scale = flint.acb(complex(middle[p])) / vector[p]
                slack = off[p] / abs(middle[p])
                for x, m, e in zip(vector, middle, off, strict=True):
                    gap = abs(scale * x - flint.acb(complex(m)))
                    assert gap <= flint.arb(float(e + slack * (abs(m) + e)) * 1.001 + 1e-80)
    assert seen or not found.alone.any()


@pytest.mark.parametrize("bits", [53, 20])
def test_T1c_the_quotient_within_its_bound_is_that_of_every_attention_of_the_cell(bits):
    """In fractions: Q^T A' Q through B' (the same entries up to the square root of n = 4)."""
    rng = np.random.default_rng(3)
    for root in (2, 3) * 6:
        raw, rho = rng.random((root**2, root**2)) ** 4, Fraction(root + 1)
        A, error = normalised(raw, 2.0**-bits)
        ends = fractions_of(rng.choice([-1, 1], raw.shape)) / 2**bits
        moved = fractions_of(raw) * (1 + ends)
        exact = moved / moved.sum(axis=1, keepdims=True)
        C = exact - exact.sum(axis=0) / root**2
        true = C[1:, 1:] - C[1:, :1] / rho - C[:1, 1:] / rho + C[0, 0] / rho**2
        B, bound = (x[0] for x in quotient_within(A[None], error[None]))
        assert (np.abs(true - fractions_of(B)) <= fractions_of(bound)).all()
        assert np.abs(B - quotient(A)).max() < 1e-14 and bound.max() < 64 * 2.0**-bits


def test_T10_symmetric_matrices_with_repeated_eigenvalues_are_enclosed():
    J = np.full((6, 6), 1 / 6)
    found = attention_discs(0.25 * np.eye(6) + 0.75 * J)
    assert not isinstance(found, Failure)
    assert np.abs(found.centres - 0.25).max() <= found.radii.min() and found.radii.max() < 1e-13


def test_components_are_those_of_the_graph_of_touching_discs():
    rng = np.random.default_rng(5)
    drawn = [(rng.standard_normal((k, 2)) @ (1, 1j), rng.random(k) * 0.4) for k in (1, 2, 7, 40)]
    # A chain in any order.
    for centres, radii in (*drawn, (rng.permutation(40) + 0j, np.full(40, 0.5))):
        touch = np.abs(centres[:, None] - centres) <= radii[:, None] + radii
        count, right = connected_components(touch, directed=False)
        # The same but for the names, which are 0, 1, ...
        label = components(centres, radii)
        assert len(set(zip(label.tolist(), right, strict=True))) == count == label.max() + 1


def drawn_layers(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Dense, causal, reducible and rank-one A with H dense, diagonal, defective, 0, at ties."""
    rng = np.random.default_rng([n, d])
    A, H = rng.random((40, n, n)) ** 3 + 1e-3, rng.standard_normal((40, d, d)) / d
    A[::4] = np.tril(A[::4])
    A[1::8, n // 2 :, : n // 2] = A[1::8, : n // 2, n // 2 :] = 0.0
    A[2::8] = A[2::8, :1]
    H[::3] -= np.eye(d)
    H[4::5] = np.eye(d) * np.array([-2.0, -0.5, 0.0, 0.5, 1.0, -1.0, 3.0, -4 / 3])[:, None, None]
    H[3::10] += np.diag(np.ones(d - 1), 1) * 3
    return A / A.sum(axis=-1, keepdims=True), H


@pytest.mark.parametrize(("n", "d"), [(1, 2), (2, 1), (3, 3), (8, 5), (24, 40)])
def test_T2_T3_layers_decided_together_are_decided_as_one_by_one(n, d):
    """Whatever `oversmoothing.verdict` says by balls or fractions too, and the same radii."""
    A, H = drawn_layers(n, d)
    decided = 0
    for (found, _, _), each, value in zip(decide_stack(A, H), A, H, strict=True):
        alone = decide_cell(cell_discs(Layer.of(each, value)))
        assert found.outcome is alone.outcome
        for one, other in zip(
            (found.consensus, found.quotient), (alone.consensus, alone.quotient), strict=True
        ):
            assert one.low <= other.high and other.low <= one.high
        said = oversmoothing.verdict(A=each, H=value)
        if n > 1 and found.outcome is not Outcome.UNDECIDED:
            decided += 1
            assert said.verdict is found.outcome
        radii = found.consensus.shown, found.quotient.shown
        assert (said.rho_consensus, said.rho_quotient or 0.0) == pytest.approx(radii)
    assert decided > 20 or n == 1


def test_a_stack_that_is_not_row_stochastic_is_refused_and_an_empty_one_has_no_answers():
    A, H = drawn_layers(3, 2)
    assert list(decide_stack(A[:0], H[:0])) == []
    A[7, 1, 2] += 0.5
    refuses("not row-stochastic", lambda: list(decide_stack(A, H)))


def exact_layer(seed: int) -> tuple[np.ndarray, list[Pair], np.ndarray, list[Pair]]:
    """(A > 0 on 5 tokens, spec(A) without one copy of 1, H, spec(H)), all of it exact in floats.

    A = 1 pi^T + E C F with F = [I, -1], E = [I; 0] - 1 pi'^T (pi' = pi without its last entry):
    F E = I, F 1 = 0 and pi^T E = 0, so that spec(A) is 1 and spec(C), Jordan blocks and all.
    """
    case, value = chosen(seed, 4, 2**20), chosen(10**6 + seed // 5, 4, 2**20)
    # A power of two under which every entry stays below 1/32.
    scale = 2.0 ** -np.ceil(np.log2(256 * np.abs(case.M).max()))
    pi = np.array([4, 3, 3, 2, 4]) / 16
    E = np.vstack([np.eye(4), np.zeros((1, 4))]) - np.outer(np.ones(5), pi[:4])
    A = pi + E @ (case.M * scale) @ np.hstack([np.eye(4), -np.ones((4, 1))])
    assert (A > 0).all() and all(sum(map(Fraction, row)) == 1 for row in A)
    return (
        A,
        [(x * Fraction(scale), y * Fraction(scale)) for x, y in case.spectrum],
        *vars(value).values(),
    )


def squared(h: Pair, a: Pair) -> Fraction:
    """|1 + h a|^2."""
    (x, y), (u, v) = h, a
    return (1 + x * u - y * v) ** 2 + (x * v + y * u) ** 2


@pytest.mark.parametrize("kind", range(5))
def test_certified_verdicts_on_chosen_spectra_are_true(kind):
    A, a_spectra, H, h_spectra = zip(*map(exact_layer, range(kind, 2800, 5)), strict=True)
    decided = 0
    for attention, value, a_values, h_values in zip(
        attention_discs_all(np.stack(A)),
        enclose_all(np.stack(H)),
        a_spectra,
        h_spectra,
        strict=True,
    ):
        found = certify_spectra(attention, value)
        consensus = max(squared(h, (Fraction(1), Fraction(0))) for h in h_values)
        quotient = max(squared(h, a) for h in h_values for a in a_values)
        sign = (consensus > quotient) - (consensus < quotient)
        assert found.verdict in (outcome_of_sign(sign), Outcome.UNDECIDED)
        decided += found.verdict == outcome_of_sign(sign)
        if found.consensus is not None and found.quotient is not None:
            for radius, exact in ((found.consensus, consensus), (found.quotient, quotient)):
                assert Fraction(radius.low) ** 2 <= exact <= Fraction(radius.high) ** 2
            low, high = found.margin
            assert consensus >= quotient or low < 0
            assert consensus <= quotient or high > 0
    assert decided >= 40


# ------------------------------------------------------------------------------------ near-ties


def test_near_ties_of_a_softmax_are_decided_in_balls():
    """The threshold of a softmax is no float: one side of it, at any distance."""
    rng = np.random.default_rng(14)
    stages = set()
    for _ in range(300):
        s, t = rng.uniform(-3, 3, size=2)
        with at_precision(300):
            x, y = (1 / (1 + (-flint.arb(float(z))).exp()) for z in (s, t))
            edge = -2 / (x + y)
            h = float(edge.mid()) * (1 + rng.choice([-1, 1]) * 10.0 ** -rng.integers(2, 18))
            true = "NON_SMOOTHING" if flint.arb(h) > edge else "SMOOTHING"
        found, _ = decide(Layer.of(logits=[[s, 0.0], [0.0, t]], H=[[h]]))
        assert found.verdict == true
        stages.add(found.method.split(" ")[0])
    assert stages == {"float64", "balls:"}


def test_failures_give_their_reasons():
    nan, jordan = np.full((2, 2), np.nan), np.array([[1.0, 1.0], [0.0, 1.0]])
    huge = np.array([[1e308, 1e308], [-1e308, 1e308]])
    good, *rest = enclose_all(np.stack([np.diag([1.0, 2.0]), nan, jordan, huge]))
    assert isinstance(good, Discs) and set(good.component) == {0, 1}
    assert all(isinstance(each, Failure | Discs) for each in rest)
    assert isinstance(rest[0], Failure) and "not finite" in rest[0].reason
    assert isinstance(rest[1], Failure) or len(set(rest[1].component)) == 1
    # Of a spectrum 1e308 (1 +- i) every bound is a number, too.
    assert isinstance(rest[2], Discs) and (rest[2].radii < 1e294).all()


def test_T10_the_norm_of_a_head_bounds_every_product_of_what_rounds_to_its_factors():
    """W_V W_proj = u [[2, -2], [2, -2]] with u = 2^-53 is defective, and all its digits cancel: by
    half a unit in each factor its eigenvalue 0 becomes 5 u, more than the 4 u of its own norm."""
    u, ones = 2.0**-53, np.ones((2, 2))
    W_proj = np.array([[1 + 2 * u, 1.0], [-1.0, -1 - 2 * u]])
    assert isinstance(head_discs(ones, W_proj, u), Failure)
    value = cell_discs(Layer.of(ones / 2, factors=(ones, W_proj))).value
    V, P = ones * (1 + np.array([u, -u])), W_proj * (1 + np.array([[u], [-u]]))
    moved = max(abs(np.linalg.eigvals(V @ P)))
    assert moved > 4 * u and (abs(value.centres) + value.radii).max() > moved


# ------------------------------------------------------- T2, T3: what discs mean for the radii


def discs(values, radii=0.0) -> Discs:
    z = np.array(values, dtype=complex)
    r = np.broadcast_to(radii, z.shape).astype(float)
    return Discs(z, r, components(z, r))


# --- the two radii ---


def test_each_bound_of_rho_C_comes_from_the_disc_that_gives_most():
    found = consensus_radius(discs([1.0, 0.9], [0.01, 0.3]))
    assert found.high == pytest.approx(2.2) and found.low == pytest.approx(1.6)
    assert found.shown == 2.0 and found.index == (-1, 0)
    apart = consensus_radius(discs([1.0, 0.5], [0.01, 0.3]))
    assert apart.low == pytest.approx(1.99) and apart.high == pytest.approx(2.01)


def test_T10_the_bounds_hold_for_points_of_the_discs_in_fractions():
    rng = np.random.default_rng(1)
    for _ in range(200):
        a, h = rng.standard_normal(2).tolist()
        r, s = (10.0 ** rng.uniform(-20, 0, 2)).tolist()
        found = quotient_radius(discs([a], r), discs([h], s))
        for p, q in product((-1, 0, 1), repeat=2):
            x, y = Fraction(a) + p * Fraction(r), Fraction(h) + q * Fraction(s)
            assert Fraction(found.low) <= abs(1 + x * y) <= Fraction(found.high)


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_T10_both_eigenvalues_of_two_discs_that_touch_may_lie_in_either(order):
    pair = discs(np.array([0.25, 0.5])[order].tolist(), 0.125)
    assert quotient_radius(pair, discs([1.0], 0.0)).low == pytest.approx(1.125)
    assert quotient_radius(discs([0.5], 0.0), pair).low == pytest.approx(1.0625)


def test_only_an_exact_zero_gives_exactly_one():
    exact = consensus_radius(discs([0.0]))
    assert (exact.low, exact.high) == (1.0, 1.0)
    still = quotient_radius(discs([0.0, 0.0, 0.5]), discs([0.0]))
    assert (still.low, still.high, still.shown) == (1.0, 1.0, 1.0)
    near = consensus_radius(discs([0.0], 1e-300))
    assert near.low < 1.0 < near.high


# --- eigenvalues alone ---


def test_a_triangular_matrix_is_taken_at_its_word_unless_it_was_rounded():
    for M in (np.array([[1.0, 5.0], [0.0, 2.0]]), np.array([[1.0, 0.0], [5.0, 2.0]])):
        found = eigenvalues(M)
        assert found.tolist() == [1, 2]
        assert sorted(eigenvalues(M, rounded=True).real) == pytest.approx([1, 2])
    assert len(eigenvalues(np.zeros((0, 0)))) == 0


@pytest.mark.parametrize("exponent", [-1000, -600, 600, 1000])
def test_eigenvalues_scale_with_their_matrix_whatever_its_size(exponent):
    M = np.array([[1.0, 2.0], [3.0, -1.0]])
    plain, scaled = eigenvalues(M), eigenvalues(np.ldexp(M, exponent))
    assert scaled.tolist() == (plain * 2.0**exponent).tolist()
