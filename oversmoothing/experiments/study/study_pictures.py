"""The picture of the study: where H goes while it trains, the lever, what trains, from its rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from oversmoothing.experiments.study.protocol import Protocol

Rows = Mapping[tuple[str, int], Any]
COLOUR = {"ord": "#000000", "sym": "#009E73", "plus": "#0072B2", "minus": "#D55E00"}
STYLE = {"cifar100": "-", "digits": "--", "bible": ":"}
FORMS = {"ord": "ViT", "sym": "signs free", "plus": "ViT+", "minus": "ViT−"}
NAMES = {"cifar100": "CIFAR-100", "digits": "digits", "bible": "text"}


def drawn(chosen: Protocol, rows: Rows) -> Figure:
    """Four panels: cosine to the start and alignment with -I along training, of networks with all
    data; what moving H does, predicted and measured, by task; loss against the start's gradient."""
    figure = Figure(figsize=(11, 7.2), layout="constrained")
    (turns, leans), (lever, trains) = figure.subplots(2, 2)
    for _, cell, _, own in chosen.runs(rows):
        plain = cell.tier == "core" and cell.fraction == 1 and cell.design.start == "normal"
        if not own or not plain or cell.design.form not in COLOUR or cell.task not in STYLE:
            continue
        look: dict[str, Any] = {"color": COLOUR[cell.design.form], "linestyle": STYLE[cell.task]}
        label = f"{FORMS[cell.design.form]}, {NAMES[cell.task]} ({len(own)} runs)"
        share = np.array(own[0]["trajectory"]["step"]) / cell.steps
        for axis, key in ((turns, "cos_free"), (leans, "folded_alignment")):
            seen = np.array([row["trajectory"][key] for row in own], dtype=float).mean((0, 2))
            axis.plot(share, seen, label=label, **look)
        if cell.design.form == "ord":
            _lever(lever, own, cell.task)
    turns.set(xlabel="share of the training", ylabel="cosine of H to its start, without trace",
              ylim=(-0.05, 1.05))  # fmt: skip
    leans.set(xlabel="share of the training", ylabel="alignment of H with $-I$, gain folded in")
    leans.axhline(0, color="0.7", linewidth=0.8)
    lever.set(xlabel="added to every eigenvalue of H", ylabel="change of log10 HFC/LFC")
    lever.axhline(0, color="0.7", linewidth=0.8)
    lever.locator_params(axis="x", nbins=5)
    if lever.lines[1:]:
        lever.plot([], [], "-", color="0.5", label="predicted")
        lever.plot([], [], "x", color="0.5", label="random, same norm")
    _trainability(trains, chosen, rows)
    if not trains.collections:
        trains.text(
            0.5, 0.5, "no run of this is on record", ha="center", transform=trains.transAxes
        )
    titles = ("a  How far H moves while it trains", "b  Whether it turns towards $-I$",
              "c  What adding to its eigenvalues does", "d  What trains")  # fmt: skip
    for axis, title in zip((turns, leans, lever, trains), titles, strict=True):
        axis.set_title(title, loc="left", fontsize=10)
        if axis is not leans and axis.get_legend_handles_labels()[1]:
            axis.legend(fontsize=7, ncols=2)
    return figure


def _lever(axis: Axes, own: list[Any], task: str) -> None:
    """Measured with its spread over seeds, predicted as a line, random changes as crosses."""
    own = [row for row in own if "lever" in row]
    if not own:
        return
    chosen = [k for k, name in enumerate(own[0]["lever"]["changes"]) if name == "shift"]
    dose = [own[0]["lever"]["doses"][k] for k in chosen]

    def of(name: str) -> Any:
        return np.array([[row["lever"][name][k] for k in chosen] for row in own])

    colour = {"cifar100": "#000000", "digits": "#0072B2", "bible": "#D55E00"}[task]
    look: dict[str, Any] = {"color": colour}
    axis.errorbar(dose, of("effect").mean(0), of("effect").std(0), fmt="o", markersize=4,
                  label=NAMES[task], **look)  # fmt: skip
    axis.plot(dose, of("predicted").mean(0), "-", linewidth=0.8, **look)
    axis.plot(dose, of("control").mean(0), "x", markersize=4, **look)


def _trainability(axis: Axes, chosen: Protocol, rows: Rows) -> None:
    """A dot a run: the loss at the end against the gradient at the start, by form and depth."""
    for form, colour in COLOUR.items():
        at, size = [], []
        for name, cell, own, ended in chosen.runs(rows):
            if cell.tier != "trainability" or cell.design.form != form:
                continue
            # A cell shows nothing before all its seeds are there.
            for row in ended if len(own) == chosen.cells[name][1] else []:
                if row["start"]["gradient"] is not None:
                    at.append((row["start"]["gradient"], row["score"]["loss"]))
                    size.append(cell.design.depth)
        if at:
            x, y = zip(*at, strict=True)
            axis.scatter(x, y, s=size, color=colour, alpha=0.5, label=FORMS[form])
    axis.set(xlabel="log10 gradient, first layer over last, at the start",
             ylabel="test loss at the end (size: depth)")  # fmt: skip
