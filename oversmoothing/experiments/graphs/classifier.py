"""A small prior-fitted node classifier in the manner of NodePFN (arXiv 2604.19028).

It is trained once, on synthetic graphs alone, and then labels nodes of a new graph from those whose
labels are given, without training. A layer has the two branches of the paper in our reading:
attention of all nodes to the labelled ones, and message passing X + A X H^T on the graph's walk A
with H = Q diag(+psi^2) Q^T (smoothing) or Q diag(-psi^2) Q^T (sharpening; `parameterisation`).
Graphs have any homophily, which the paper's own prior has not.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from oversmoothing.experiments.forms.regions import value_projection
from oversmoothing.experiments.graphs.phase import homophilous_graph, labels_of, walk
from oversmoothing.experiments.intervals import FEWEST, mean_interval
from oversmoothing.simulations.drawing.result import Sentence, measured
from oversmoothing.simulations.drawing.wording import signed
from oversmoothing.simulations.state import one_thread
from oversmoothing.theory.support.errors import InputError, whole_number

Setting = Literal["smoothing", "sharpening"]
FORM: dict[Setting, str] = {"smoothing": "plus", "sharpening": "minus"}
NODES, CLASSES, FEATURES, WIDTH, LAYERS = 40, 3, 4, 32, 3
DEGREE, BATCH, RATE = 6.0, 16, 3e-3
# Distance of the classes' features, in units of their noise: hard enough for edges to matter.
SIGNAL = 0.7
# Largest |h| at the start of training.
START = 0.5


@dataclass(frozen=True)
class Task:
    """Graphs [m]: A [m, n, n], features [m, n, f], labels [m, n], given [m, n] bool, homophily."""

    A: Tensor
    features: Tensor
    labels: Tensor
    given: Tensor
    homophily: np.ndarray


def drawn_task(count: int, rng: np.random.Generator) -> Task:
    """Graphs with homophily uniform in [0.1, 0.9], class features of `SIGNAL`, and between a tenth
    and half of the labels given (one at least)."""
    homophily = rng.uniform(0.1, 0.9, count)
    labels = np.stack([labels_of(NODES, CLASSES, rng) for _ in range(count)])
    edges = [homophilous_graph(y, s, DEGREE, rng) for y, s in zip(labels, homophily, strict=True)]
    means = rng.standard_normal((count, CLASSES, FEATURES)) * SIGNAL
    noise = rng.standard_normal((count, NODES, FEATURES))
    features = np.take_along_axis(means, labels[..., None], axis=1) + noise
    shares = rng.uniform(0.1, 0.5, (count, 1))
    given = rng.random((count, NODES)) < shares
    given[:, 0] = True
    return Task(
        torch.from_numpy(walk(np.stack(edges))).float(),
        torch.from_numpy(features).float(),
        torch.from_numpy(labels),
        torch.from_numpy(given),
        homophily,
    )


class _Layer(nn.Module):
    def __init__(self, form: str, generator: torch.Generator) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.H = value_projection(form, WIDTH)
        self.H.initialise(START, generator)
        self.ffn = nn.Sequential(
            nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)
        )

    def forward(self, X: Tensor, A: Tensor, given: Tensor) -> Tensor:
        q, k, v = self.query_key_value(self.norms[0](X)).chunk(3, -1)
        logits = q @ k.mT * WIDTH**-0.5
        seen = logits.masked_fill(~given[:, None, :], -torch.inf).softmax(-1)
        X = X + self.out(seen @ v)
        X = X + A @ self.norms[1](X) @ self.H().mT
        after: Tensor = X + self.ffn(self.norms[2](X))
        return after


class NodeClassifier(nn.Module):
    """Scores [m, n, classes] of nodes from features, given labels and A."""

    def __init__(self, setting: Setting, seed: int = 0) -> None:
        super().__init__()
        if setting not in FORM:
            raise InputError(f"the setting is '{setting}': choose smoothing or sharpening")
        generator = torch.Generator().manual_seed(seed)
        self.setting = setting
        self.entry = nn.Linear(FEATURES + CLASSES, WIDTH)
        self.layers = nn.ModuleList(_Layer(FORM[setting], generator) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)
        with torch.no_grad():
            for part in self.modules():
                if isinstance(part, nn.Linear):
                    draw = torch.randn(part.weight.shape, generator=generator)
                    part.weight.copy_(draw * part.in_features**-0.5)
                    part.bias.zero_()

    def forward(self, task: Task) -> Tensor:
        """Scores; a label that is not given is not read."""
        told = functional.one_hot(task.labels, CLASSES) * task.given[..., None]
        X = self.entry(torch.cat([task.features, told.to(task.features)], -1))
        for layer in self.layers:
            X = layer(X, task.A, task.given)
        scores: Tensor = self.head(self.norm(X))
        return scores


@one_thread()
def fitted(setting: Setting, *, steps: int = 600, seed: int = 0) -> NodeClassifier:
    """A classifier trained on `steps` batches of fresh graphs; deterministic in the seed."""
    whole_number("the number of training steps", steps, 1)
    model = NodeClassifier(setting, seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
    rng = np.random.default_rng([seed, 1])
    for _ in range(steps):
        task = drawn_task(BATCH, rng)
        asked = ~task.given
        loss = functional.cross_entropy(model(task)[asked], task.labels[asked])
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        schedule.step()
    return model.eval()


@dataclass(frozen=True)
class Score:
    """Accuracies [graphs] on the nodes whose label was not given, of the classifier and of the
    majority of the given labels, and the graphs' homophily."""

    setting: str
    accuracy: np.ndarray
    majority: np.ndarray
    homophily: np.ndarray

    def gain(self) -> tuple[float, float, float]:
        """Accuracy less the majority's: mean and 95 % interval over the graphs."""
        return mean_interval(self.accuracy - self.majority)

    def sentence(self) -> Sentence:
        """The accuracies and their difference, with the intervals."""
        mean, low, high = mean_interval(self.accuracy)
        base, base_low, base_high = mean_interval(self.majority)
        parts = []
        for name, which in (
            ("heterophilous (below .3)", self.homophily < 0.3),
            ("homophilous (above .7)", self.homophily > 0.7),
        ):
            if which.sum() >= FEWEST:
                own = mean_interval(self.accuracy[which])
                count = int(which.sum())
                parts.append(f"{name} {own[0]:.3f} ({own[1]:.3f} to {own[2]:.3f}, n = {count})")
        gain = self.gain()
        mid, least, most = (signed(x, 3) for x in gain)
        return Sentence(
            f"{self.setting} H, {len(self.accuracy)} held-out graphs: accuracy {mean:.3f} (95 % "
            f"interval {low:.3f} to {high:.3f}), majority {base:.3f} ({base_low:.3f} to "
            f"{base_high:.3f}), difference {mid} ({least} to {most}); " + "; ".join(parts) + ".",
            measured(len(self.accuracy), *gain[1:], of="graph"),
        )


@torch.no_grad()
def score(model: NodeClassifier, *, graphs: int = 300, seed: int = 0) -> Score:
    """On `graphs` drawn graphs that no training has seen (another stream of the generator)."""
    whole_number("the number of graphs", graphs, 2)
    task = drawn_task(graphs, np.random.default_rng([seed, 2]))
    asked = ~task.given
    right = (model(task).argmax(-1) == task.labels) & asked
    counts = (functional.one_hot(task.labels, CLASSES) * task.given[..., None]).sum(1)
    # A tie goes to the first of the labels, which are drawn.
    guess = (counts.argmax(-1, keepdim=True) == task.labels) & asked
    number = asked.sum(1)
    return Score(
        model.setting,
        (right.sum(1) / number).double().numpy(),
        (guess.sum(1) / number).double().numpy(),
        task.homophily,
    )
