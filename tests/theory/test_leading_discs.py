"""T10: discs of the largest eigenvalues alone hold them, and an interval of rho_Q holds it."""

from typing import Any

import flint
import numpy as np
import pytest

from oversmoothing.theory.numbers.rounding import UNIT, at_precision, gamma
from oversmoothing.theory.spectra import leading_discs
from oversmoothing.theory.spectra.discs import components, enclose_all
from oversmoothing.theory.spectra.leading_discs import leading_radii, quotient_radii
from tests.support.cases import cases
from tests.theory.test_discs import Chosen, chosen

ONE = np.ones((1, 1))


def of_one(M: Any, t: float, error: float = 0.0, off: float = 0.0) -> tuple[float, float]:
    """The radius about M_11 + off, with V = e_1 and U the first row of M, every error of norm
    `error`, beside what its formula says."""
    M, n = np.array(M), len(M)
    U, N = M[:1], M.copy()
    N[0] = 0.0
    wide = np.full((n, n), error / n)
    a, V = (M[:1, :1] + off).astype(np.complex128), np.eye(n)[:, :1]
    found = leading_radii(M[None], wide[None], a, V[None], U[None], np.array([t]), ONE)[0, 0]
    t = t or np.nan
    u = np.linalg.norm(U)
    delta = gamma(3) * (np.linalg.norm(M) + u) + error
    left = np.linalg.norm(N[:, 0]) + gamma(n) * np.linalg.norm(N) + delta
    X, s = N, 1 / t
    for k in range(3):
        size = np.linalg.norm(X)
        s *= 1 + (size + delta) / t**2**k
        delta = gamma(n) * size**2 + 2 * size * delta + delta**2
        X = X @ X
    s /= 1 - (np.linalg.norm(X) + delta) / t**8
    return float(found), float(abs(off) + u * (left * s + gamma(n + 1)))


@cases(
    "M, t, error, off",
    ([[0.9, 0.3], [0.02, 0.35]], 0.75, 0.0, 0.0),
    ([[0.9, 0.3], [0.02, 0.35]], 0.75, 1e-3, 0.0),
    ([[0.9, 0.3], [0.02, 0.35]], 0.75, 0.0, 0.01),
    # What rounding may do, and nothing else: M = V U, then N V = 0, then N^2 = 0.
    ([[0.75, 0.5], [0.0, 0.0]], 0.5, 0.0, 0.0),
    ([[0.75, 0.0], [0.0, 0.25]], 0.5, 0.0, 0.0),
    ([[1e-5, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]], 1e-6, 0.0, 0.0),
)
def test_T10_the_radius_of_one_leading_eigenvalue_is_that_of_its_formula(M, t, error, off):
    found, expected = of_one(M, t, error, off)
    assert found == pytest.approx(expected, rel=1e-6, abs=0)


def test_T10_both_of_a_pair_have_the_radius_of_its_formula():
    """N = (0, 0, (p, q, b)) with N^2 = b N; the residuals are |p| and |q|, the weights 2."""
    x, y, p, q, b, t = 0.6, 0.5, 0.02, 0.01, 0.3, 0.7
    M = np.array([[x, y, 0.0], [-y, x, 0.0], [p, q, b]])
    a = np.array([[complex(x, y), complex(x, -y)]])
    given = M[None], 0 * M[None], a, np.eye(3)[None, :, :2], M[None, :2], np.array([t])
    size = float(np.linalg.norm(M[2]))
    s = (1 + size / t) * (1 + b * size / t**2) * (1 + b**3 * size / t**4)
    expected = abs(a[0, 0]) * s / t / (1 - b**7 * size / t**8) * p * 4
    assert leading_radii(*given, np.ones((1, 2)))[0].tolist() == pytest.approx([expected] * 2)


@pytest.mark.parametrize("t", [-0.75, 0.0, 0.3, 0.35])
def test_T10_nothing_is_proved_beyond_a_circle_that_the_rest_may_pass(t):
    with np.errstate(all="ignore"):
        assert not of_one([[0.9, 0.3], [0.02, 0.35]], t)[0] < np.inf
        assert of_one([[0.9, 0.3], [0.02, 0.35]], 0.5)[0] < np.inf


def test_T10_one_weight_widens_the_others_discs_and_narrows_the_first():
    rng = np.random.default_rng(0)
    M = np.diag([0.9, 0.8, 0.7, 0.1, 0.05]) + 1e-6 * rng.standard_normal((5, 5))
    V, U = np.eye(5)[:, :3], M[:3]
    given = [x[None] for x in (M, 0 * M, np.diag(M)[:3].astype(complex), V, U)]
    t = np.array([0.5])
    alike = leading_radii(*given, t, np.ones((1, 3)))[0]
    first = leading_radii(*given, t, np.array([[1.0, 64.0, 64.0]]))[0]
    assert first[0] < 0.6 * alike[0] and (first[1:] > 10 * alike[1:]).all()
    exact = np.sort(np.linalg.eigvals(M).real)[::-1][:3]
    assert (np.abs(exact - np.diag(M)[:3]) <= first).all()


def planted(seed: int) -> Chosen:
    """A chosen spectrum, and beside it one that is a hundredth of another, in one basis."""
    large, small = chosen(seed, 6), chosen(seed + 1, 9)
    rng = np.random.default_rng(seed)
    M = np.zeros((15, 15))
    M[:6, :6], M[6:, 6:] = large.M * 64, small.M
    for _ in range(20):
        p, q = rng.choice(15, 2, replace=False)
        M[p] += M[q]
        M[:, q] -= M[:, p]
    return Chosen(M, [(64 * x, 64 * y) for x, y in large.spectrum] + small.spectrum)


def test_T10_a_component_beyond_the_circle_holds_as_many_chosen_eigenvalues_as_discs():
    """All that are beyond it are in some disc, whatever V and U, good or bad, are."""
    proved, alone = 0, 0
    for seed in range(40):
        case, rng = planted(seed), np.random.default_rng(seed)
        exact, M = np.array([complex(x, y) for x, y in case.spectrum]), case.M[None]
        a, V, U = leading_discs._ritz(M)
        if seed % 2:
            V = V * (1 + 10.0 ** -rng.integers(3, 10) * rng.standard_normal(V.shape))
        sizes = np.sort(np.abs(exact))[::-1]
        for t in np.append(np.linspace(0.3, 1.0, 8) * sizes[0], (sizes[5] + sizes[6]) / 2):
            kept = np.abs(a) > 0.8 * t
            centres = np.where(kept, a, 0)
            parts = centres, np.where(kept[:, None], V, 0), np.where(kept[..., None], U, 0)
            wider = np.ones(a.shape)
            radii = leading_radii(M, 4 * UNIT * np.abs(M), *parts, np.array([t]), wider)[0]
            if not (radii < np.inf).all():
                continue
            proved += 1
            inside = np.abs(exact[:, None] - centres[0]) <= radii
            assert inside[np.abs(exact) >= t].any(axis=1).all()
            label, beyond = components(centres[0], radii), np.abs(centres[0]) - radii > t
            for one in set(label.tolist()):
                if beyond[label == one].all():
                    alone += 1
                    held = inside[:, label == one].any(axis=1).sum()
                    assert held == (label == one).sum()
    assert proved > 20 and alone > 20


def balls(M: np.ndarray) -> list[complex]:
    with at_precision(300):
        table = flint.acb_mat([[flint.acb(x) for x in row] for row in M.tolist()])
        return [complex(x) for x in table.eig(algorithm="approx")]


@pytest.mark.parametrize("kind", ["drawn", "tilted", "pair"])
def test_T2_an_interval_holds_rho_Q_of_every_matrix_within_the_error(kind):
    """Against eigenvalues to 90 digits of matrices at the corners of the error."""
    rng = np.random.default_rng(len(kind))
    n, d, m = 34, 5, 6
    M = 0.25 * rng.standard_normal((m, n, n)) / n**0.5
    if kind != "pair":
        M = 2 * M @ (np.geomspace(1, 1e-6, n)[:, None] * rng.standard_normal((m, n, n)) / n**0.5)
    if kind == "tilted":
        M = M * np.geomspace(2, 0.1, n)
    if kind == "pair":
        M[:, :2, :2] += np.array([[0.3, 0.5], [-0.5, 0.3]])
    H, error = rng.standard_normal((m, d, d)), 1e-14 * rng.random((m, n, n))
    value = enclose_all(H)
    found = quotient_radii(M, error, value)
    for i, bounds in enumerate(found):
        for sign in (-1, 1):
            a = balls(M[i] + sign * error[i] * np.sign(rng.standard_normal((n, n))))
            rho = np.abs(1 + np.multiply.outer(a, balls(H[i]))).max()
            if bounds is not None:
                assert bounds.low <= rho * (1 + 1e-15) and rho * (1 - 1e-15) <= bounds.high
                assert bounds.low <= bounds.shown <= bounds.high <= bounds.low * (1 + 1e-9)
    assert sum(bounds is not None for bounds in found) >= 3, found


def test_what_leading_eigenvalues_leave_open_has_no_interval():
    """No rho_Q above 1, eigenvalues of one modulus, nearly repeated ones, zeros, an H of wide
    discs, no numbers, and twice the same; a neighbour changes none of them."""
    rng = np.random.default_rng(1)
    n, d = 32, 3
    M, H = np.zeros((7, n, n)), rng.standard_normal((7, d, d))
    M[0] = 0.2 / n
    H[0] = -0.5 * np.eye(d)
    M[1] = np.linalg.qr(rng.standard_normal((n, n)))[0]
    M[2] = 0.5 * np.eye(n) + np.diag(np.full(n - 1, 1e-3), 1)
    M[4] = 0.01 * rng.random((n, n))
    H[4] = np.eye(d) + np.diag([1.0, 1.0], 1) + np.diag([1e-16], -2)
    M[5] = np.nan
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    M[6] = (basis * np.append([0.5, 0.5], np.geomspace(0.3, 1e-9, n - 2))) @ basis.T
    value = enclose_all(H)
    assert quotient_radii(M, 0 * M, value) == [None] * 7
    good = 0.01 * rng.random((n, n))[None]
    H[4] = np.diag([1.0, 0.5, -0.25])
    # Joined discs of H are no hindrance: all of them are bounded.
    H[0], M[0] = np.eye(d) + np.diag([1e-17, 1e-17], 1) + np.diag([1e-17], -2), good[0]
    value = enclose_all(H)
    assert value.component[0].max() + 1 < d
    among = quotient_radii(np.concatenate([M[:4], good, M[5:]]), 0 * M, value)
    first = among[0]
    assert among[4] is not None and first is not None and first.low < first.shown < first.high
    assert among[4] == quotient_radii(good, 0 * good, enclose_all(H[4:5]))[0]
