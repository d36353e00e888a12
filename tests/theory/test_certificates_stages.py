"""Certificates from logits, from heads, about one X_0, in stacks and in balls: made and checked."""

import json
from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from oversmoothing.theory.certificate import certify, genericity, make_certificate
from oversmoothing.theory.checker.check import check_certificate
from oversmoothing.theory.layer.attention import softmax_within
from oversmoothing.theory.layer.layer import Layer, load_layer, read_layer
from oversmoothing.theory.numbers.exact import to_float
from oversmoothing.theory.numbers.rounding import at_precision, largest
from oversmoothing.theory.proofs import strategies as own
from oversmoothing.theory.spectra.blocks import enclose_in_balls
from oversmoothing.theory.spectra.discs import Discs, Failure, enclose_all
from oversmoothing.theory.spectra.layer_discs import attention_discs
from oversmoothing.theory.verdict import stages
from oversmoothing.theory.verdict.stages import ball_stage, decide, exact_stage, float_stage
from oversmoothing.theory.verdict.verdict import verdict
from tests.forgeries.forging import forged, refused
from tests.support.tables import floats
from tests.theory.test_certificates import CAUSAL, LOGITS, NEGATIVE, POSITIVE, START

FLOAT = floats("AA")


def confirmed(body):
    found = check_certificate(json.dumps(body))
    assert found.accepted, found.words
    return found.words


# --------------------------------------------------------------------------------------- logits


def test_an_underflowing_weight_is_no_mask():
    """exp(-1000) is not 0: the eigenvalue 1 does not repeat, and no tie may be claimed."""
    case = Layer.of(logits=[[0.0, -1000.0], [-1000.0, 0.0]], H=[[1.0]])
    assert (case.A > 0).all()
    assert decide(case)[0].verdict == "UNDECIDED"
    masked = Layer.of(logits=[[0.0, -np.inf], [-np.inf, 0.0]], H=[[1.0]])
    assert (np.eye(2) == masked.A).all()
    tiny = Layer.of(A=[["1/2", "1/2"], [Fraction(1, 10**400), 1 - Fraction(1, 10**400)]], H=[["1"]])
    assert len(tiny.classes) == 1 and len(masked.classes) == 2


def test_the_verdict_takes_logits(tmp_path, told):
    numerical = verdict(logits=LOGITS, H=NEGATIVE)
    certified = verdict(logits=LOGITS, H=NEGATIVE, exact_binary=True)
    by_hand = verdict(A=softmax_within(LOGITS)[0], H=NEGATIVE)
    assert numerical.verdict == certified.verdict == by_hand.verdict == "NON_SMOOTHING"
    assert (numerical.status, certified.status) == ("certified", "certified")
    assert certified.rho_quotient == pytest.approx(numerical.rho_quotient, rel=1e-12)
    path, cert = tmp_path / "case.json", tmp_path / "cert.json"
    rows = [["-inf" if np.isneginf(x) else x for x in row] for row in CAUSAL.tolist()]
    path.write_text(json.dumps({"logits": rows, "H": POSITIVE.tolist(), "X0": START.tolist()}))
    assert np.array_equal(load_layer(str(path))[0].logits, CAUSAL)
    for more in ([], ["--exact-binary"]):
        assert "SMOOTHING" in told(0, "verdict", path, *more)
    assert "SMOOTHING" in told(0, "certify", path, "--out", cert)
    out = told(0, "check", cert)
    assert "contains the dominant mode" in out and "accepted: SMOOTHING" in out


# ---------------------------------------------------------------------------------------- heads


def test_a_head_is_certified_through_its_core():
    rng = np.random.default_rng(2)
    factors = rng.standard_normal((6, 3)) / 4, rng.standard_normal((3, 6)) / 4
    X0 = rng.standard_normal((7, 6))
    case, start = read_layer(logits=LOGITS, factors=factors, X0=X0)
    body = certify(case, start)
    assert set(body["input"]) == {"numbers", "logits", "W_V", "W_proj", "X0"}
    assert body["claim"]["genericity"]["mode"] == "consensus"
    confirmed(body)
    dense = certify(*read_layer(logits=LOGITS, H=(factors[0] @ factors[1]).T, X0=X0))
    assert dense["claim"]["verdict"] == body["claim"]["verdict"]
    first, second = (
        float.fromhex(b["claim"]["genericity"]["coefficient"][0]) for b in (body, dense)
    )
    assert first == pytest.approx(second, rel=1e-6)


# ---------------------------------------------------------------------------------- genericity


@given(st.integers(2, 6), st.integers(1, 4), st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=40)
def test_the_coefficient_is_that_of_the_eigenvectors(n, d, seed, negative):
    """|w^T X_0 z| over the lengths, from LAPACK's left eigenvectors."""
    rng = np.random.default_rng(seed)
    A = rng.dirichlet(np.ones(n), size=n)
    A /= A.sum(axis=1, keepdims=True)
    H = (-0.5 if negative else 0.5) * np.eye(d) + 0.2 * rng.standard_normal((d, d))
    X0 = rng.standard_normal((n, d))
    case, start = read_layer(A, H, X0)
    claim, _ = genericity(case, start, decide(case)[0].verdict)
    if claim is None:
        return
    a, w = np.linalg.eig(A.T)
    h, z = np.linalg.eig(H.T)
    mu = np.abs(1 + np.outer(a, h))
    one = np.argmin(np.abs(a - 1))
    if claim["mode"] == "consensus":
        mu[np.arange(n) != one] = -1
    else:
        mu[one] = -1
    i, j = np.unravel_index(np.argmax(mu), mu.shape)
    size = np.linalg.norm(w[:, i]) * np.linalg.norm(z[:, j]) * np.linalg.norm(X0)
    low, high = map(float.fromhex, claim["coefficient"])
    slack = 1e-10 * np.linalg.cond(w) * np.linalg.cond(z)
    assert low - slack <= abs(w[:, i] @ X0 @ z[:, j]) / size <= high + slack
    assert 0 < low <= high <= 1


def test_a_depth_is_refused_where_it_cannot_be_recomputed():
    body = certify(*read_layer(logits=LOGITS, H=POSITIVE, X0=START))
    claim = body["claim"] | {"depth": 100, "eps": "1/10"}
    found = check_certificate(forged(body, ["claim"], claim))
    assert not found.accepted and "fractions or binary64 only" in found.words


# -------------------------------------------------------------------------------------- stages


def near_tie(n, seed, distance):
    """(A, h): h at a relative distance from the threshold of A, found in balls."""
    rng = np.random.default_rng(seed)
    A = rng.dirichlet(np.ones(n), size=n)
    A /= A.sum(axis=1, keepdims=True)
    case = Layer.of(A, [[1.0]])
    with at_precision(stages.BITS):
        finest = list(stages.attention_spectra(case))[-1].boxes
        # T3b for real h: loses iff -s < h < 0, s the largest 2 (1 - Re a) / (1 - |a|^2).
        s = largest([2 * (1 - a.real) / (1 - abs(a) ** 2) for a in finest])
        h = -float(s.mid()) * (1 + distance)
        true = "SMOOTHING" if flint.arb(h) < -s else "NON_SMOOTHING"
    return A, h, true


@pytest.mark.parametrize("distance", [1e-6, -1e-6, 1e-14, -1e-14, 0.0])
def test_larger_near_ties_are_decided_in_balls_and_confirmed(distance):
    A, h, true = near_tie(30, 5, distance)
    found = make_certificate(*read_layer(A, [[h]], np.arange(30.0)[:, None] % 7))
    body = found.body
    assert body["claim"]["verdict"] == true
    assert found.method.startswith("balls" if abs(distance) < 1e-10 else "float64")
    low, high = map(float.fromhex, body["claim"]["margin"])
    assert low > 0 or high < 0
    assert true in confirmed(body)
    other = {"SMOOTHING": "NON_SMOOTHING", "NON_SMOOTHING": "SMOOTHING"}[true]
    assert refused(forged(body, ["claim", "verdict"], other))


@pytest.mark.parametrize("size", [29, 30])
def test_beyond_its_size_a_near_tie_stays_undecided(monkeypatch, size):
    A, h, _ = near_tie(30, 5, 0.0)
    monkeypatch.setattr(stages, "BALL_SIZE", size)
    found = make_certificate(*read_layer(A, [[h]], np.ones((30, 1))))
    assert (found.body["claim"]["verdict"] == "UNDECIDED") == (size < 30)
    assert size == 30 or ("overlap" in found.reason and "genericity" not in found.body["claim"])
    confirmed(found.body)


@given(own.exact_cases(max_n=4, max_d=3))
@settings(max_examples=60)
def test_all_stages_agree(drawn):
    A, H, _ = drawn
    case = Layer.of(to_float(A), to_float(H))
    assume(case.n > 1)
    exact, _ = exact_stage(case)
    for stage in (float_stage, ball_stage):
        assert stage(case).verdict in (exact.verdict, "UNDECIDED")


@pytest.mark.parametrize("seed", range(3))
def test_T10_left_eigenvectors_hold_for_every_matrix_of_the_cell(seed):
    """Normalised as y_i = 1 in the coordinates of the basis."""
    rng = np.random.default_rng(seed)
    middle, error, k = rng.standard_normal((4, 4)), 1e-7, 4
    cell = flint.acb_mat([[flint.acb(flint.arb(x, error)) for x in row] for row in middle.tolist()])
    found = next(iter(enclose_in_balls(cell)))
    assert all(found.alone)
    V = np.array([[complex(x.mid()) for x in row] for row in found.basis.tolist()])
    for _ in range(5):
        own = middle + error * rng.choice([-1.0, 1.0], middle.shape)
        values, left = np.linalg.eig(np.linalg.inv(V) @ own @ V)
        left = np.linalg.inv(left)
        for i in range(k):
            j = int(np.abs(left[:, i] / np.linalg.norm(left, axis=1)).argmax())
            assert found.boxes[i].contains(flint.acb(complex(values[j])))
            expected = np.linalg.solve(V.T, left[j] / left[j, i])
            for x, ball in zip(expected, found.left_vector(i), strict=True):
                wide = ball + flint.acb(flint.arb(0, 1e-12), flint.arb(0, 1e-12))
                assert wide.contains(flint.acb(complex(x))) and ball.real.rad() < 1e-2


# -------------------------------------------------------------------------------------- stacks


def test_a_singular_basis_fails_alone(monkeypatch):
    """LAPACK refuses a whole stack for one member: the others must not suffer."""
    M = np.stack([np.diag([1.0, 2.0]), np.array([[1.0, 1.0], [-1.0, -1.0]])])
    invert = np.linalg.inv

    def refusing(V):
        if (np.abs(np.linalg.det(V)) < 1e-7).any():
            raise np.linalg.LinAlgError("Singular matrix")
        return invert(V)

    monkeypatch.setattr(np.linalg, "inv", refusing)
    good, bad = enclose_all(M)
    assert isinstance(good, Discs)
    assert isinstance(bad, Failure) and "Singular" in bad.reason


def test_causal_attention_shows_its_spectrum_on_the_diagonal():
    """T1h, where the eigenvectors are far too ill-conditioned for discs."""
    n = 80
    logits = np.random.default_rng(9).standard_normal((n, n))
    logits[np.triu_indices(n, 1)] = -np.inf
    A, error = softmax_within(logits)
    found = attention_discs(A, error)
    assert isinstance(found, Discs) and len(found) == n - 1
    assert np.array_equal(found.centres.real, np.diag(A)[1:]) and (found.radii < 1e-12).all()
    nearly = A.copy()
    nearly[0, 1] = 1e-300
    assert isinstance(attention_discs(nearly), Failure)
    for H in ([[-0.5]], [[0.5]]):
        confirmed(certify(Layer.of(logits=logits, H=H)))
    # a_1 = min A_ii: the threshold decides, in balls where floats cannot.
    edge = -2 / (1 + float(np.diag(A).min()))
    found = make_certificate(Layer.of(logits=logits, H=[[edge]]))
    assert found.body["claim"]["verdict"] != "UNDECIDED" and found.method.startswith("balls")
    confirmed(found.body)


# ------------------------------------------------------- verdicts about the binary numbers


def test_T10_a_certified_verdict_replaces_word_radii_and_reason():
    for h, word, rho_q in ((0.5, "SMOOTHING", 1.25), (-0.5, "NON_SMOOTHING", 0.75)):
        found = verdict(A=FLOAT, H=[[h]], exact_binary=True)
        assert (found.verdict, found.status) == (word, "certified")
        assert found.rho_consensus == pytest.approx(1 + h, rel=1e-12)
        assert found.rho_quotient == pytest.approx(rho_q, rel=1e-12)
        numerical = verdict(A=FLOAT, H=[[h]])
        assert found.reason.startswith("certified: rho_") and "(float64" in found.reason
        assert found.reason.endswith(numerical.reason)
        assert (found.tends_to, found.limit_rank) == (numerical.tends_to, numerical.limit_rank)


def test_T10_what_no_stage_separates_is_not_certified():
    """a = -1/2 and h = -4 tie at 3; H = -4 11^T/32 is too large to be decided exactly."""
    A, H = [[0.25, 0.75], [0.75, 0.25]], np.full((32, 32), -4 / 32)
    found = verdict(A=A, H=H, exact_binary=True)
    assert (found.verdict, found.status) == ("UNDECIDED", "numerical")
    assert found.reason.startswith("not certified: ") and "(balls" in found.reason
    assert found.rho_consensus == pytest.approx(3) == found.rho_quotient
    assert verdict(A=A, H=[[-4.0]], exact_binary=True).verdict == "TIE"
    # The word of a state that is 0 is kept even so.
    zero = verdict(A=A, H=H, X0=np.zeros((2, 32)), exact_binary=True)
    assert zero.verdict == "UNDEFINED" and zero.reason.startswith("not certified: ")


@pytest.mark.parametrize("X0", [None, [[0.0], [0.0]]])
def test_T11_trivial_and_undefined_keep_their_word_in_a_certificate(X0):
    A = [[1.0]] if X0 is None else FLOAT
    found = verdict(A=A, H=[[0.5]], X0=X0, exact_binary=True)
    assert found.verdict == ("TRIVIAL" if X0 is None else "UNDEFINED")
    assert found.status == "certified" and found.rho_consensus == pytest.approx(1.5)
    assert (found.rho_quotient is None) == (X0 is None)


def test_T10_a_defective_H_too_large_to_be_exact_is_decided_where_it_is_triangular():
    """One Jordan block of 26 has no eigenbasis, but shows its spectrum on its diagonal."""
    H = 0.5 * np.eye(26) + np.eye(26, k=1)
    for certified in (False, True):
        found = verdict(A=FLOAT, H=H, exact_binary=certified)
        assert (found.verdict, found.status) == ("SMOOTHING", "certified")
