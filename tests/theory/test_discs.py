"""T10: discs hold the spectrum of everything that rounds to a matrix, and of the matrix itself."""

from __future__ import annotations

from fractions import Fraction

import flint
import numpy as np
import pytest

import oversmoothing
from oversmoothing.theory.layer.attention import quotient
from oversmoothing.theory.layer.cell import softmax_within
from oversmoothing.theory.layer.layer import Layer
from oversmoothing.theory.numbers.rounding import UNIT, Bounded, at_precision
from oversmoothing.theory.spectra.discs import (
    Failure,
    components,
    eigenvector,
    enclose,
    enclose_all,
)
from oversmoothing.theory.spectra.layer_discs import attention_discs, normalised, quotient_within
from oversmoothing.theory.support.errors import InputError
from oversmoothing.theory.verdict.by_discs import cell_discs, decide_cell, decide_stack
from oversmoothing.theory.verdict.formulas import Outcome
from tests.support.tables import rational
from tests.theory.chosen_spectra import chosen, held


@pytest.mark.parametrize("seed", range(120))
def test_T10_each_component_holds_as_many_chosen_eigenvalues_as_it_has_discs(seed):
    """The exact matrix is within half a unit in the last place of the rounded one."""
    case = chosen(seed, 1 + (7 * seed) % 24)
    found = enclose(case.M, UNIT * np.abs(case.M))
    assert isinstance(found, Failure) or held(found, case.spectrum)


@pytest.mark.parametrize(("k", "seed"), [(64, 0), (128, 1), (200, 4), (512, 0)])
def test_T10_large_matrices_are_held_too(k, seed):
    case = chosen(seed, k)
    found = enclose(case.M, UNIT * np.abs(case.M))
    assert isinstance(found, Failure) or held(found, case.spectrum)


def test_T10_most_matrices_with_separate_eigenvalues_are_enclosed():
    for seed in range(0, 60, 5):
        case = chosen(seed, 8)
        found = enclose(case.M, UNIT * np.abs(case.M))
        assert not isinstance(found, Failure) and found.radii.max() < 1e-6


@pytest.mark.parametrize("seed", range(0, 40, 3))
def test_T10_without_an_error_the_discs_are_about_the_binary_numbers(seed):
    """Against eigenvalues to 300 digits."""
    M = chosen(seed, 2 + seed % 9).M
    found = enclose(M)
    if isinstance(found, Failure):
        return
    with at_precision(1000):
        exact = flint.acb_mat([[flint.acb(x) for x in row] for row in M.tolist()])
        count = np.zeros(len(M), dtype=int)
        for value in exact.eig(algorithm="approx"):
            homes = {
                int(found.component[i])
                for i, (z, r) in enumerate(zip(found.centres, found.radii, strict=True))
                if abs(value - flint.acb(complex(z))) <= flint.arb(float(r)) * (1 + 1e-12) + 1e-60
            }
            assert len(homes) == 1
            count[homes.pop()] += 1
        assert count[: found.component.max() + 1].tolist() == np.bincount(found.component).tolist()


@pytest.mark.parametrize("relative", [UNIT, 2.0**-24])
@pytest.mark.parametrize("seed", range(40))
def test_T10_the_radii_bound_the_exact_similarity_of_every_matrix_within_the_error(seed, relative):
    """P^-1 M' P = D + E in fractions: the row sums of |E| in complex form."""
    rng = np.random.default_rng(seed)
    M = chosen(seed, 2 + seed % 5).M
    error = relative * np.abs(M)
    found = enclose_all(M[None], error[None], keep=True)[0]
    if isinstance(found, Failure) or found.basis is None:
        return
    z, k = found.centres, len(M)
    ends = rng.choice([-1, 1], (k, k)).tolist()
    moved = [
        [Fraction(M[i, j]) + ends[i][j] * Fraction(error[i, j]) for j in range(k)] for i in range(k)
    ]
    P = rational(found.basis[0].tolist())
    E = P.inv() * rational(moved) * P
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
    for n in (4, 9):
        root = 2 if n == 4 else 3
        for _ in range(6):
            raw = rng.random((n, n)) ** 4
            A, error = normalised(raw, 2.0**-bits)
            moved = [
                [Fraction(x) * (1 + Fraction(int(rng.choice([-1, 1])), 2**bits)) for x in row]
                for row in raw.tolist()
            ]
            exact = [[x / sum(row) for x in row] for row in moved]
            means = [sum(row[j] for row in exact) / n for j in range(n)]
            C = [[x - m for x, m in zip(row, means, strict=True)] for row in exact]
            rho = Fraction(root + 1)
            B, bound = (x[0] for x in quotient_within(A[None], error[None]))
            for i in range(1, n):
                for j in range(1, n):
                    true = C[i][j] - C[i][0] / rho - C[0][j] / rho + C[0][0] / rho**2
                    assert abs(true - Fraction(B[i - 1, j - 1])) <= Fraction(bound[i - 1, j - 1])
            assert np.abs(B - quotient(A)).max() < 1e-14 and bound.max() < 64 * 2.0**-bits


def test_T10_symmetric_matrices_with_repeated_eigenvalues_are_enclosed():
    J = np.full((6, 6), 1 / 6)
    found = attention_discs(0.25 * np.eye(6) + 0.75 * J)
    assert not isinstance(found, Failure)
    assert np.abs(found.centres - 0.25).max() <= found.radii.min() and found.radii.max() < 1e-13


def test_components_are_those_of_the_graph_of_touching_discs():
    rng = np.random.default_rng(5)
    for k in (1, 2, 7, 40):
        centres = rng.standard_normal(k) + 1j * rng.standard_normal(k)
        radii = rng.random(k) * 0.4
        label = components(centres, radii)
        touch = np.abs(centres[:, None] - centres) <= radii[:, None] + radii
        reach = touch.copy()
        for _ in range(k):
            reach = (reach.astype(int) @ touch.astype(int)) > 0
        assert ((label[:, None] == label) == reach).all()
        assert sorted(set(label.tolist())) == list(range(label.max() + 1))


@pytest.mark.parametrize("size", [0.5, 5.0, 60.0, 900.0])
def test_T10_a_softmax_within_holds_those_of_all_logits_that_round_to_the_same(size):
    """In balls of 200 bits, the logits moved by half a unit in the last place and masks kept."""
    rng = np.random.default_rng(int(size))
    logits = np.round(rng.standard_normal((5, 5)) * size, 3)
    logits[0, 3] = -np.inf
    A, error = softmax_within(logits, UNIT)
    assert error[0, 3] == 0 and (error <= 1e-9).all()
    with at_precision(200):
        for _ in range(20):
            ends = rng.integers(-1, 2, logits.shape)
            for i, row in enumerate(logits.tolist()):
                weights = [
                    flint.arb(0)
                    if x == -np.inf
                    else (flint.arb(x) * (1 + flint.arb(int(ends[i, j])) / 2**53)).exp()
                    for j, x in enumerate(row)
                ]
                total = sum(weights, flint.arb(0))
                for j, weight in enumerate(weights):
                    gap = abs(weight / total - flint.arb(float(A[i, j])))
                    assert not gap > flint.arb(float(error[i, j]))


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
    with pytest.raises(InputError, match="not row-stochastic"):
        list(decide_stack(A, H))
