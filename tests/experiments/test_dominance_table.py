"""Table 1 in reading E2: the theorems hold in every run, and each class is what it says."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from oversmoothing import verdict
from oversmoothing.experiments.intervals import (
    FEWEST,
    Z95,
    in_words,
    mean_interval,
    percentiles,
    resampled_interval,
    resampled_share,
    share_interval,
)
from oversmoothing.paper_figures.figures.table_1 import dominance_table, require_theorems
from oversmoothing.simulations.spectra import head_values
from oversmoothing.simulations.spectra.head_values import CLASSES, layer_dominance, mean_attention
from oversmoothing.theory.spectra.discs import Discs
from oversmoothing.theory.spectra.layer_discs import attention_spectrum
from oversmoothing.theory.support.errors import RequirementError
from oversmoothing.theory.verdict.formulas import dominance, safe_interval
from tests.support.refusals import refuses
from tests.support.tiny_models import random_pixels, softmax_attention, tiny_model

seeds = st.integers(0, 2**32 - 1)


def heads(seed: int, n: int, count: int = 1, scale: float = 3.0) -> np.ndarray:
    """Attention of one image with `count` heads, [1, count, n, n]."""
    return np.stack([softmax_attention(seed + k, n, scale) for k in range(count)])[None]


def random_H(seed: int, d: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((d, d)) / d**0.5


@given(seed=seeds, n=st.integers(2, 9), d=st.integers(1, 8), count=st.integers(1, 3))
@settings(max_examples=80, deadline=None)
def test_the_class_agrees_with_the_verdict_of_the_theory_and_so_do_the_radii(seed, n, d, count):
    attention, H = heads(seed, n, count), random_H(seed, d)
    found = layer_dominance(attention, H)
    answer = verdict(A=attention[0].mean(0), H=H)
    expected = {"SMOOTHING": {"consensus"}, "NON_SMOOTHING": {"smallest", "other"}}
    assert found.classes[0] in expected.get(answer.verdict, set(CLASSES))
    radii = dominance(attention_spectrum(attention[0].mean(0)), np.linalg.eigvals(H))
    assert found.rho_consensus == pytest.approx(radii.rho_consensus, rel=1e-9)
    assert found.rho_quotient[0] == pytest.approx(radii.rho_quotient, rel=1e-9)


@given(seed=seeds, n=st.integers(2, 9), d=st.integers(1, 8))
@settings(max_examples=60, deadline=None)
def test_real_spectra_never_give_another_eigenvalue(seed, n, d):
    """T2a: for real spec(A) the winner is at 1 or at the smallest eigenvalue."""
    generator = np.random.default_rng(seed)
    logits = generator.standard_normal((n, n))
    kernel = np.exp(logits + logits.T)
    attention = (kernel / kernel.sum(1, keepdims=True))[None, None]
    assert layer_dominance(attention, random_H(seed, d)).classes[0] != "other"


def test_complex_attention_can_be_won_by_another_eigenvalue():
    """A rotates three tokens fast and exchanges two groups slowly: the winner at h = -0.9 is the
    complex pair, farthest from -1/h (T3a), though a real eigenvalue lies further left."""
    turn = np.array([[0.05, 0.9, 0.05], [0.05, 0.05, 0.9], [0.9, 0.05, 0.05]])
    swap = np.array([[0.25, 0.75], [0.75, 0.25]])
    A = np.kron(swap, np.full((3, 3), 1 / 3)) / 2 + np.kron(np.full((2, 2), 0.5), turn) / 2
    # spec(A): 1; -1/4 from the swap; half of -0.425 +- 0.736i from the turn; zeros.
    assert layer_dominance(A[None, None], -0.9 * np.eye(2)).classes[0] == "other"
    # What the discs of A leave open: which modulus is larger, and which real part is the smallest.
    for a, radius, h, name in (
        ([0.95], 0.01, 1, "consensus"), ([0.95], 0.1, 1, "tie"),
        ([-0.5 + 0.50001j, -0.5000001 - 0.5j], 1e-6, -1, "smallest"),
        ([-0.5 + 0.50001j, -0.5000001 - 0.5j], 1e-8, -1, "other"),
    ):  # fmt: skip
        attention = Discs(np.array(a, complex), np.full(len(a), radius), np.arange(len(a)))
        value = Discs(np.array([h], complex), np.zeros(1), np.arange(1))
        decided = dominance(attention.centres, value.centres)
        assert head_values._class_of(decided, attention, value) == name


@given(n=st.integers(2, 8), d=st.integers(1, 6))
@settings(max_examples=20, deadline=None)
def test_equal_moduli_have_no_winner(n, d):
    """h = 0: every mode has modulus 1 (T2b); uniform attention with h = -2 ties too."""
    attention = heads(n, n)
    assert layer_dominance(attention, np.zeros((d, d))).classes[0] == "tie"
    uniform = np.full((1, 1, n, n), 1 / n)
    assert layer_dominance(uniform, -2 * np.eye(d)).classes[0] == "tie"


@given(seed=seeds, n=st.integers(2, 8))
@settings(max_examples=60, deadline=None)
def test_for_real_h_outside_is_outside_the_safe_interval(seed, n):
    h = np.random.default_rng(seed).uniform(-4, 1, 12)
    found = layer_dominance(heads(seed, n), np.diag(h))
    s = safe_interval(attention_spectrum(heads(seed, n)[0, 0]))
    assert found.safe[0] == pytest.approx(s, rel=1e-9)
    assert found.outside[0] == pytest.approx(np.mean((h >= 0) | (h <= -s)))


@given(seed=seeds, n=st.integers(2, 8), count=st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_float32_attention_is_made_row_stochastic(seed, n, count):
    single = heads(seed, n, count).astype(np.float32)
    A = mean_attention(single)
    np.testing.assert_allclose(A.sum(-1), 1, rtol=0, atol=n * 2.3e-16)
    np.testing.assert_allclose(A[0], single[0].mean(0), rtol=0, atol=1e-6)
    refuses("not row-stochastic", layer_dominance, 1.5 * single, np.eye(2))


@pytest.fixture(scope="module")
def table():
    models = {name: tiny_model(name) for name in ("vit-random", "vit+", "vit-")}
    return dominance_table(models, random_pixels(12))


def test_the_classes_share_out_every_case(table):
    for _, part in table.groupby("model"):
        assert part["class"].tolist() == list(CLASSES)
        assert part["count"].sum() == part["cases"].iloc[0] == 12 * 2
        assert part["percent"].sum() == pytest.approx(100)
        assert (part["percent_low"] <= part["percent"]).all()
        assert (part["percent"] <= part["percent_high"]).all()


def test_signed_models_obey_the_theorems_before_any_training(table):
    require_theorems(table)
    rows = table[table["class"] == "consensus"].set_index("model")
    assert rows["percent"]["vit+"] == 100 and rows["outside_percent"]["vit+"] == 100
    assert rows["layers_within_unit"]["vit-"] == 2 and rows["percent"]["vit-"] == 0
    assert rows["outside_percent"]["vit-"] == 0


def test_a_minus_model_beyond_the_interval_is_counted_and_not_hidden():
    """One psi^2 = 9 in the second layer: consensus wins there, and the columns say so."""
    model = tiny_model("vit-")
    with torch.no_grad():
        model.layers[1].attention.psi[0] = 3.0
    found = dominance_table({"vit-": model}, random_pixels(6)).set_index("class").loc["consensus"]
    assert found["percent"] == 50 and found["layers_beyond_one"] == 1
    assert found["layers_within_unit"] == 1 and found["consensus_within_unit"] == 0
    assert found["outside_percent"] == pytest.approx(100 / (2 * 16))
    assert found["h_real_min"] == pytest.approx(-9, rel=1e-6)


def test_a_table_against_the_theorems_is_refused(table):
    for model, column, said in (
        ("vit+", "count", "T2d"), ("vit-", "consensus_within_unit", "T3d allows none"),
    ):  # fmt: skip
        wrong = table.copy()
        wrong.loc[(wrong["model"] == model) & (wrong["class"] == "consensus"), column] += 1
        refuses(said, require_theorems, wrong, error=RequirementError)


@given(share=st.floats(0, 1), images=st.integers(FEWEST, 10**6))
def test_the_interval_of_a_share_contains_it_and_stays_in_range(share, images):
    low, high = share_interval(share, images)
    assert 0 <= low <= share <= high <= 1


def test_the_interval_of_a_share_covers_dependent_cases():
    """Layers that always agree within an image: the worst case still has 95 % coverage."""
    generator = np.random.default_rng(0)
    shares = generator.binomial(200, 0.3, 4000) / 200
    inside = [low <= 0.3 <= high for low, high in (share_interval(s, 200) for s in shares)]
    assert 0.93 < np.mean(inside) < 0.97


@pytest.mark.parametrize("m", [2, 3, 5, 30])
def test_the_interval_of_a_mean_covers_it_however_few_are_measured(m):
    draws = np.random.default_rng(0).standard_normal((2000, m))
    inside = [low <= 0 <= high for _, low, high in (mean_interval(d, fewest=2) for d in draws)]
    assert 0.935 < np.mean(inside) < 0.965


def test_the_interval_of_a_mean_keeps_what_is_undefined():
    mean, low, high = mean_interval(np.array([1.0, 2.0, 3.0, 4.0]), fewest=2)
    assert mean == 2.5 and high - mean == pytest.approx(mean - low)
    # Student's t with 3 degrees of freedom.
    assert high - mean == pytest.approx(3.18245 * np.std([1, 2, 3, 4], ddof=1) / 2, rel=1e-5)
    assert np.isnan(mean_interval(np.array([1.0, np.nan]))).all()
    assert mean_interval(np.array([1.0, np.inf]))[0] == np.inf
    assert np.isnan(mean_interval(np.array([1.0]), fewest=2)[1])


@pytest.mark.parametrize("inputs", [1, 2, 4])
def test_below_five_inputs_there_is_no_interval_but_the_number_needed(inputs):
    """Two runs that agree were "100 % (95 % 100 to 100)"; two equal readings "[61.11, 61.11]"."""
    values = np.ones(inputs)
    for low, high in (
        mean_interval(values)[1:],
        share_interval(1.0, inputs),
        resampled_interval(lambda k: float(values[k].mean()), inputs),
    ):
        assert np.isnan(low) and np.isnan(high)
        said = in_words(low, high, inputs, "{:.2f}".format)
        assert said == f"no interval: {inputs} input{'s' * (inputs > 1)}, at least 5 are needed"


def test_from_five_inputs_on_intervals_say_their_number_and_have_a_width():
    """A share at 100 % has room below, resampled or not; inputs that agree have no interval."""
    low, high = share_interval(1.0, 5)
    assert low == pytest.approx(1 / (1 + Z95**2 / 5)) and high == 1
    assert in_words(low, high, 5, "{:.2f}".format) == "95 % interval 0.57 to 1.00, 5 inputs"
    assert resampled_share(1.0, np.ones(2000), 5) == share_interval(1.0, 5)
    assert np.isnan(resampled_share(0.6, np.full(2000, 0.6), 8)).all()
    assert np.isnan(percentiles(np.r_[np.linspace(0, 1, 1900), np.full(100, np.nan)], 8)).all()


@pytest.mark.parametrize(("inputs", "lost"), [(5, 0.04), (8, 0.02), (30, 0.005)])
def test_a_resampled_mean_is_covered_nearly_as_by_students_t(inputs, lost):
    """The middle 95 % alone cover in 84 and 88 % of normal draws of 5 and 8.

    lost: resamples of few values have shorter tails than the normal. By Cornish and Fisher their
    kurtosis k / inputs, k about -1 for few normal values, takes (z^3 - 3 z) / (24 inputs) of the
    reach z = 3.10 (2.53) away, .17 (.05) at 5 (8), where Student's density at the end is .04 (.03)
    on either side: .014 (.003); quantiles of 2,000 resamples lose about as much again at 5.
    """
    inside = []
    for number, draw in enumerate(np.random.default_rng(0).standard_normal((600, inputs))):
        low, high = resampled_interval(lambda k, draw=draw: float(draw[k].mean()), inputs, number)
        inside.append(low <= 0 <= high)
    # Four standard errors of 600 draws.
    error = 4 * (0.95 * 0.05 / 600) ** 0.5
    assert 0.95 - lost - error < np.mean(inside) < 0.95 + error
