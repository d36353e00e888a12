"""A block of a trained model applied again and again: does it collapse, and who said so before.

A recorded run of `oversmoothing probe MODEL loop` on DeiT-Ti, every block looped 200 times.
"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from oversmoothing.paper_figures.figure_base import Context, label_panels
from oversmoothing.paper_figures.models_shown import recorded_run
from oversmoothing.simulations.drawing.picture import PALETTE, new_figure

TITLE = "A trained block looped: where its tokens end, predicted before and measured"
SHORT = (
    "HFC/LFC of each block of DeiT-Ti before and after it is looped by itself, with two "
    "predictions that were made before; and how often each predictor was right about "
    "collapse."
)
NOT_SHOWN = (
    "Looping a block that was trained to be used once is an experiment of thought; twelve "
    "blocks of one model on few photographs. Only (a)'s chosen predictor was scored on unseen"
    " runs."
)

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
    blocks = pd.DataFrame(run["by_block"])[["block", "exponent", "collapsed", *SERIES]]
    scores = pd.DataFrame.from_dict(run["all_runs_nothing_chosen"], orient="index")
    scores.insert(0, "predictor", scores.index)
    known = {"loops": run["loops"], "collapsed_at": run["collapsed_at"]}
    return pd.concat(
        [blocks.assign(kind="block", **known), scores.assign(kind="score", **known)],
        ignore_index=True,
    )


def draw(table: pd.DataFrame) -> Figure:
    """Agreement by predictor, then the ends by block, an arrow from before to after."""
    figure, axes = new_figure(1, 2, height=3.2, width_ratios=[2, 3])
    left, right = axes[0]
    scores = table[table["kind"] == "score"].sort_values("agree", ignore_index=True)
    middle, base = 100 * scores["agree"], 100 * scores["base"].iloc[0]
    reach = [middle - 100 * scores["agree_low"], 100 * scores["agree_high"] - middle]
    left.errorbar(middle, scores.index, xerr=reach, color=PALETTE["blue"], fmt="o", markersize=5)
    left.axvline(base, color=PALETTE["vermillion"], linestyle="--")
    left.set_yticks(scores.index, [str(each) for each in scores["predictor"]])
    left.set(
        xlabel=f"right about collapse (%)\ndashed: always guessing the commoner ({base:.0f})",
        xlim=(0, 101),
    )
    best = scores.iloc[-1]
    left.set_title(f"{best['predictor']}: right in {100 * best['agree']:.0f} %")
    blocks = table[table["kind"] == "block"]
    for row in blocks.itertuples():
        right.annotate("", (row.block, row.end), (row.block, row.start),
                       arrowprops={"arrowstyle": "->", "color": PALETTE["light"]})  # fmt: skip
    for name, (label, colour, marker) in SERIES.items():
        aside = {"end_by_local_law": -0.2, "end_by_8_tokens": 0.2}.get(name, 0.0)
        right.plot(
            blocks["block"] + aside, blocks[name], marker, color=PALETTE[colour], label=label
        )
    line = table["collapsed_at"].iloc[0]
    right.axhline(line, color=PALETTE["grey"], linewidth=0.8, linestyle=":")
    right.set(yscale="log", xlabel="block looped", ylabel="HFC/LFC (median)")
    right.set_title(f"{(blocks['end'] <= line).sum()} of {len(blocks)} blocks collapse (dotted)")
    right.set_xticks(range(1, len(blocks) + 1))
    right.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2)
    label_panels(axes)
    return figure


def words(table: pd.DataFrame) -> str:
    blocks, first = table[table["kind"] == "block"], table.iloc[0]
    falls = blocks["end"] <= first["collapsed_at"]
    best = table[table["kind"] == "score"].sort_values("agree").iloc[-1]
    off = np.exp(np.median(np.abs(np.log(blocks["end_by_8_tokens"] / blocks["end"]))))
    return (
        f"(b) Medians over 20 photographs, {first['loops']:.0f} loops; dotted: the line "
        f"of collapse, HFC/LFC = {first['collapsed_at']:g}. {int(falls.sum())} of {len(blocks)} "
        f"blocks end below it; the 8 tokens miss the median end by a factor of {off:.2f} in the "
        f"median block. (a) Share of {best['pairs']:.0f} runs in which collapse was told, 95 % "
        f"intervals over {best['blocks']:.0f} blocks and {best['inputs']:.0f} photographs; "
        f"best on all runs: {best['predictor']}, {100 * best['agree']:.0f} %. Recorded: "
        f"{RECORDED}."
    )
