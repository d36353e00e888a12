"""Graphs in the place of attention: homophily, measures, the phase picture, the classifier."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import oversmoothing
from oversmoothing.experiments.graphs import classifier, phase
from tests.support.cases import cases
from tests.support.refusals import refuses

PATH = np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("homophily", [0.05, 0.5, 0.95])
def test_edges_within_labels_are_the_set_share(homophily):
    labels = phase.labels_of(300, 3, rng())
    edges = phase.homophilous_graph(labels, homophily, 10.0, rng(1))
    assert (edges == edges.T).all() and not edges.diagonal().any()
    # About 1500 edges: four standard deviations of a share, and of a count.
    share = (edges * (labels[:, None] == labels)).sum() / edges.sum()
    assert abs(share - homophily) < 4 * 0.5 / 1500**0.5
    assert abs(edges.sum() / 300 - 10) < 4 * 2 * 1500**0.5 / 300


def test_walk_and_gat_are_row_stochastic_on_the_graph_s_edges():
    edges = phase.homophilous_graph(phase.labels_of(20, 2, rng()), 0.3, 4.0, rng(2))
    X = rng(3).standard_normal((20, 3))
    for A in (phase.walk(edges), phase.gat(edges, X, rng(4).standard_normal(6))):
        np.testing.assert_allclose(A.sum(-1), 1, atol=1e-14)
        assert ((A > 0) == (edges + np.eye(20) > 0)).all()
    np.testing.assert_allclose(phase.gat(edges, X, np.zeros(6)), phase.walk(edges), atol=1e-15)
    # Scores x_i + 2 x_k: of node 1 with x = (1, 0, -1) they are 2, 0 and -2 (slope 1/5: -2/5).
    A = phase.gat(PATH, np.array([[1.0], [0.0], [-1.0]]), np.array([1.0, 2.0]))
    weights = np.exp([2.0, 0.0, -0.4])
    np.testing.assert_allclose(A[1], weights / weights.sum(), atol=1e-15)


def test_the_class_eigenvalue_is_that_of_a_graph_with_the_expected_neighbours():
    """Two labels, complete bipartite K_{4,4}: homophily 0, degree 4: (1 - 4)/5."""
    labels = np.repeat([0, 1], 4)
    edges = (labels[:, None] != labels[None, :]).astype(float)
    side = 1.0 - 2 * labels
    np.testing.assert_allclose(
        phase.walk(edges) @ side, phase.class_eigenvalue(0.0, 4.0, 2) * side, atol=1e-15
    )


def test_dirichlet_energy_is_the_rayleigh_quotient_of_the_laplacian():
    X = rng(5).standard_normal((12, 3))
    edges = phase.homophilous_graph(phase.labels_of(12, 2, rng()), 0.5, 4.0, rng(6))
    by_edges = sum(np.square(X[i] - X[k]).sum() for i, k in np.argwhere(np.triu(edges)))
    degree = edges.sum(1) + 1
    wanted = by_edges / (degree @ np.square(X).sum(1))
    assert phase.dirichlet_energy(X, edges) == pytest.approx(wanted, rel=1e-12)
    assert phase.dirichlet_energy(np.ones((12, 2)), edges) == 0
    # Two nodes, one edge, opposite: 4/(2 + 2).
    pair = np.array([[0.0, 1], [1, 0]])
    assert phase.dirichlet_energy(np.array([[1.0], [-1.0]]), pair) == 1
    assert np.isnan(phase.dirichlet_energy(np.zeros((2, 1)), pair))


def test_mad_by_hand():
    """Rows e_1, e_2, -e_1: (1 + 2)/2, 1, 3/2."""
    X = np.array([[1.0, 0], [0, 5], [-2, 0]])
    assert phase.mad(X) == pytest.approx((1.5 + 1 + 1.5) / 3, abs=1e-15)
    assert phase.mad(np.ones((4, 2))) == 0
    assert np.isnan(phase.mad(np.zeros((3, 2))))
    with_zero = np.array([[1.0, 0], [0, 0], [0, 1]])
    assert phase.mad(with_zero) == pytest.approx(1, abs=1e-15)


def test_the_share_of_labels_is_that_of_their_means():
    """1, 3, -1, -3: the means 2 and -2 hold 16 of 20, or 0 and 0 nothing."""
    Y, labels = np.array([[[1.0], [3], [-1], [-3]]] * 2), np.array([[0, 0, 1, 1], [0, 1, 0, 1]])
    np.testing.assert_allclose(phase._label_shares(Y, labels), [0.8, 0], atol=1e-15)


CYCLE = (3 * np.eye(3) + np.roll(np.eye(3), 1, axis=1)) / 4


@cases(
    "A, h, a, C, Q",
    # K_2 with loops: a = 0; two of these: a = 1, a tie.
    (np.full((2, 2), 0.5), -3.0, 0, 2, 1),
    (np.kron(np.eye(2), np.full((2, 2), 0.5)), 0.5, 1, 1.5, 1.5),
    # A complex a decides by its disc: |1 + h a|^2 = 1 + 5 h/4 + 7 h^2/16 for a = (5 +- i sqrt 3)/8
    # is (1 + h)^2 at h = -2 (1 - Re a)/(1 - |a|^2) = -4/3, and less below.
    *[(CYCLE, h, (5 + 3**0.5 * 1j) / 8, abs(1 + h), (1 + 5 * h / 4 + 7 * h * h / 16) ** 0.5)
      for h in (-1.32, -4 / 3, -1.35)],
)  # fmt: skip
def test_radii_are_those_of_the_quotient(A, h, a, C, Q):
    found = phase.deciding(A[None], np.array([h]))
    assert found[0] in (pytest.approx(a), pytest.approx(np.conj(a)))
    np.testing.assert_allclose(phase.radii(found, np.array([h])), [[C], [Q]], atol=1e-14)


def test_the_boundary_from_homophily_alone_by_hand():
    """Degree 8, two labels: a_1 = (1 + 8 (2 s - 1))/9, at s = 1/100 -0.76; from s = 1/3 on the
    end of the bulk, (1 - 2 sqrt 8)/9. The boundary is -2/(1 + a_1)."""
    s = np.array([0.01, 0.5, 0.9])
    bulk = -2 / (1 + (1 - 32**0.5) / 9)
    wanted = [-2 / (1 - 6.84 / 9), bulk, bulk]
    np.testing.assert_allclose(phase.boundary(s), wanted, rtol=1e-14)
    for h, smooths in ((wanted, [False] * 3), (np.nextafter(wanted, -np.inf), [True] * 3)):
        assert phase.by_homophily(s, np.array(h)).tolist() == smooths
    assert phase.by_homophily(s, np.array([1e-9, 0.0, -1e-9])).tolist() == [True, False, False]


def test_a_run_smooths_where_it_falls_at_half_the_rate_of_its_gap(monkeypatch):
    """gap = log rho_C/rho_Q. A run that should smooth must fall faster than gap/2 a layer, another
    not by half of what counts as a near tie."""
    for share, other, smooths in ((0.49, 0.49, (False, False)), (0.51, 0.51, (True, True))):

        def run(batch, share=share, other=other):
            C, Q = phase.radii(phase.deciding(batch.A, batch.h), batch.h)
            gap = np.log(C / Q)
            return np.where(gap > 0, -share * gap, -other * phase.NEAR_TIE), batch.X0, batch.X0

        monkeypatch.setattr(phase, "run", run)
        table = phase.phase_table(20, seed=1)
        assert table["predicted"].nunique() == 2
        gap = np.log(table["rho_C"] / table["rho_Q"])
        assert (table["predicted"] == (gap > 0)).all()
        assert (table["observed"] == np.where(gap > 0, *smooths)).all()
        assert (table["clear"] == (gap.abs() > 0.02)).all()


@pytest.mark.parametrize("attention", ["walk", "gat"])
def test_graphs_smooth_as_their_spectrum_says(attention):
    table = phase.phase_table(60, seed=1, attention=attention)
    clear = table[table["clear"]]
    assert len(clear) > 40 and (clear["predicted"] == clear["observed"]).all()
    assert clear["predicted"].nunique() == 2


def test_the_sentences_on_the_sign_of_h_name_the_graphs_that_they_count():
    table = phase.phase_table(60, seed=4)
    table.loc[:1, ["h", "homophily"]] = [[0.05, 0.1], [-0.05, 0.1]]
    said = [sentence.says for sentence in phase.sentences(table)]
    mixed = table[table["homophily"] < 0.3]
    for words, chosen in (
        ("h > 0.1", mixed["h"] > 0.1),
        ("-1 < h < -0.1", (mixed["h"] > -1) & (mixed["h"] < -0.1)),
    ):
        start = f"{words}, heterophilous ({int(chosen.sum())} graphs): "
        assert any(text.startswith(start) for text in said), start


def test_bad_input_is_a_sentence():
    few = phase.labels_of(8, 2, rng())
    for message, call, *given in (
        ("2 classes at least", phase.labels_of, 3, 2, rng()),
        ("2 classes at least", phase.labels_of, 9, 1, rng()),
        ("lower the degree", phase.homophilous_graph, few, 1.0, 7.0, rng()),
        ("number of graphs is 0", phase.phase_table, 0),
        ("choose smoothing or sharpening", classifier.NodeClassifier, "warming"),
    ):
        refuses(message, call, *given)
    refuses("training steps is 0", classifier.fitted, "smoothing", steps=0)


def test_labels_that_are_not_given_are_not_read():
    model, task = classifier.NodeClassifier("smoothing").eval(), classifier.drawn_task(2, rng())
    hidden = torch.where(task.given, task.labels, (task.labels + 1) % classifier.CLASSES)
    assert torch.equal(model(task), model(replace(task, labels=hidden)))


@pytest.mark.parametrize(("setting", "sign"), [("smoothing", 1), ("sharpening", -1)])
def test_h_keeps_its_sign_and_the_classifier_learns(setting, sign):
    model = classifier.fitted(setting, steps=60)
    for layer in model.layers:
        assert (sign * torch.linalg.eigvalsh(layer.H().detach()) > 0).all()
    found = classifier.score(model, graphs=60)
    assert found.gain()[1] > 0
    untrained = classifier.score(classifier.NodeClassifier(setting).eval(), graphs=60)
    assert untrained.accuracy.mean() < found.accuracy.mean()


def test_the_command_draws_and_says(tmp_path, told):
    words = ["graphs", "--draws", "30", "--out", str(tmp_path)]
    printed = told(0, *words, "--plot", "--classifier", "--steps", "60")
    assert "From the graph's spectrum" in printed and "sharpening H, 300 held-out" in printed
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"graphs.{kind}" for kind in ("json", "csv", "txt", "html", "png", "pdf")}
    assert len(json.loads(told(0, *words, "--json"))["graphs"]) == 30
    # GAT's files stand beside the walk's.
    assert "complex in" in told(0, *words, "--plot", "--attention", "gat")
    assert (tmp_path / "graphs_gat.png").exists()


def test_a_wrong_prediction_leaves_with_status_1(tmp_path, monkeypatch):
    right = phase.radii
    monkeypatch.setattr(phase, "radii", lambda a, h: right(a, h)[::-1])
    assert oversmoothing.main(["graphs", "--draws", "20", "--out", str(tmp_path)]) == 1
