"""A block of a trained model applied again and again: does it collapse, and who said so before.

A recorded run of `oversmoothing probe MODEL loop` on DeiT-Ti, every block looped 200 times.
"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from oversmoothing.paper_figures.figure_base import (
    PALETTE,
    Context,
    PaperFigure,
    label_panels,
    new_figure,
)
from oversmoothing.paper_figures.models_shown import recorded_run

RECORDED = (
    "oversmoothing probe deit-tiny-patch16-224 loop --images photographs --count 20 --every 30"
)
SERIES = {
    "start": ("before looping", "grey", "o"),
    "end": ("measured after", "black", "D"),
    "end_by_local_law": ("local law (T12)", "blue", "x"),
    "end_by_8_tokens": ("8 tokens looped", "vermillion", "+"),
}


def data(context: Context) -> pd.DataFrame:
    """kind 'block': medians over inputs by block; kind 'score': agreement on collapse of each
    predictor on all runs, 95 % interval over blocks and inputs."""
    run = recorded_run("repeated", "loop_deit_tiny.json")
    blocks = pd.DataFrame(
        [{name: row[name] for name in ("block", "exponent", "collapsed", *SERIES)}
         for row in run["by_block"]]
    )  # fmt: skip
    scores = pd.DataFrame(
        [{"predictor": name, **values} for name, values in run["all_runs_nothing_chosen"].items()]
    )
    known = {"loops": run["loops"], "collapsed_at": run["collapsed_at"]}
    return pd.concat(
        [blocks.assign(kind="block", **known), scores.assign(kind="score", **known)],
        ignore_index=True,
    )


def draw(table: pd.DataFrame) -> Figure:
    """Ends by block (left), agreement by predictor (right)."""
    figure, axes = new_figure(1, 2, height=3.0, width_ratios=[3, 2])
    left, right = axes[0]
    blocks = table[table["kind"] == "block"]
    for name, (label, colour, marker) in SERIES.items():
        left.plot(blocks["block"], blocks[name], marker, color=PALETTE[colour], label=label)
    left.axhline(table["collapsed_at"].iloc[0], color=PALETTE["grey"], linewidth=0.8, linestyle=":")
    left.set(yscale="log", xlabel="block looped", ylabel="HFC/LFC (median)")
    left.set_xticks(range(1, len(blocks) + 1))
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2)
    scores = table[table["kind"] == "score"].reset_index(drop=True)
    middle = 100 * scores["agree"]
    reach = [middle - 100 * scores["agree_low"], 100 * scores["agree_high"] - middle]
    right.barh(range(len(scores)), middle, xerr=reach, color=PALETTE["sky"], ecolor="black")
    right.axvline(100 * scores["base"].iloc[0], color=PALETTE["vermillion"], linestyle="--")
    right.set_yticks(range(len(scores)), [str(each) for each in scores["predictor"]])
    right.invert_yaxis()
    right.set(
        xlabel="right about collapse (%)\ndashed: always guessing\nthe more common outcome",
        xlim=(0, 100),
    )
    right.grid(False, axis="y")
    label_panels(axes)
    return figure


def words(table: pd.DataFrame) -> str:
    """What is shown, with the counts."""
    blocks, first = table[table["kind"] == "block"], table.iloc[0]
    falls = blocks["end"] <= first["collapsed_at"]
    scores = table[table["kind"] == "score"]
    best = scores.sort_values("agree").iloc[-1]
    off = np.exp(np.median(np.abs(np.log(blocks["end_by_8_tokens"] / blocks["end"]))))
    return (
        f"(a) Medians over 20 photographs, {first['loops']:.0f} loops; dotted: the line "
        f"of collapse, HFC/LFC = {first['collapsed_at']:g}. {int(falls.sum())} of {len(blocks)} "
        f"blocks end below it; the 8 tokens miss the median end by a factor of {off:.2f} in the "
        f"median block. (b) Share of {best['pairs']:.0f} runs in which collapse was told, 95 % "
        f"intervals over {best['blocks']:.0f} blocks and {best['inputs']:.0f} photographs; "
        f"best on all runs: {best['predictor']}, {100 * best['agree']:.0f} %. Recorded: "
        f"{RECORDED}."
    )


FIGURE = PaperFigure(
    title="A trained block looped: where its tokens end, predicted before and measured",
    short=(
        "HFC/LFC of each block of DeiT-Ti before and after it is looped by itself, with two "
        "predictions that were made before; and how often each predictor was right about "
        "collapse."
    ),
    not_shown=(
        "Looping a block that was trained to be used once is an experiment of thought; twelve "
        "blocks of one model on few photographs. Only (b)'s chosen predictor was scored on unseen"
        " runs."
    ),
    data=data,
    draw=draw,
    words=words,
)
