"""An `Answer` in words: three questions with their answers, and what else the table says.

A sentence may say less than the table, never other than the table: what the inputs do not tell is
said to be open, and the spectra, which are those of a limit, are held against the measured mixing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import pandas as pd

from oversmoothing.experiments.inspection.answer import (
    AGREE,
    COLLAPSED_COSINE,
    COLLAPSED_RATIO,
    MILD,
    STRONG,
    Advice,
    Answer,
    Cause,
    Grade,
)
from oversmoothing.experiments.inspection.states import CONVERGED, LARGE, TOGETHER, shortened
from oversmoothing.experiments.intervals import FEWEST, in_words
from oversmoothing.simulations.drawing.wording import factor_text, signed

# Of each grade the answer, where the inputs tell it, and its name.
GRADES = {
    Grade.STRONG_SHARPENING: ("No: its tokens grow apart strongly.", "strong sharpening"),
    Grade.MILD_SHARPENING: ("No: its tokens grow apart mildly.", "mild sharpening"),
    Grade.NONE: ("No: its tokens end about as different as they began.", "no notable change"),
    Grade.MILD_SMOOTHING: ("Yes, mildly: its tokens become more alike.", "mild smoothing"),
    Grade.STRONG_SMOOTHING: (
        "Yes, strongly: its tokens become much more alike.", "strong smoothing"),
    Grade.COLLAPSED: ("Yes, wholly: its tokens collapse into one.", "collapse"),
}  # fmt: skip
# Letters of a list of words in the summary.
WORDS = 120
# What each cause is called, with the verb's ending of the third person.
PARTS = {
    "mixing": ("attention's mixing", "s"),
    "scales": ("the tokens' own scales", ""),
    "gains": ("the gains of attention's norm", ""),
    "ffn": ("the FFN", "s"),
}
POST = PARTS | {"gains": ("the norms' gains", "")}


@dataclass(frozen=True)
class Reply:
    """One of the three questions of a report, and the answer in a sentence.

    details: what carries it, each with how it is known: 'proved', 'measured' or 'untested'.
    """

    question: str
    short: str
    details: tuple[tuple[str, str], ...] = ()


def does_it(
    outcome: Answer, inputs: str, apart: tuple[float, float] = (math.nan, math.nan), over: str = ""
) -> Reply:
    """How much it smooths, how surely, and from where to where it goes.

    apart: the mean cosines at the input and at the end without the largest direction, `over` these.
    """
    question = "Does it smooth?"
    if outcome.grade is None:
        why = "HFC/LFC or a cosine is undefined for some input: tokens are 0, or their mean is."
        return Reply(question, "This is not known.", ((why, "measured"),))
    short, _ = GRADES[outcome.grade]
    (first, last), (start, end) = outcome.ratios, outcome.cosines
    if Grade.COLLAPSED < outcome.grade < 0 and end <= start:
        short = "Yes, by HFC/LFC alone: it falls, while the angles between tokens do not close."
    elif outcome.grade > 0 and end >= start:
        short = "No: HFC/LFC rises, though the angles between tokens do not open."
    if outcome.inputs < FEWEST:
        short += f" (Seen on {inputs} alone: to speak of others takes at least {FEWEST}.)"
    elif outcome.certainty == "cannot tell":
        short = f"These {inputs} do not show whether it smooths or sharpens."
    elif not outcome.sure and outcome.least is not None and outcome.most is not None:
        names = {grade: name for grade, (_, name) in GRADES.items()}
        # Beside a change of one direction that is told "no notable change" would read as none.
        names[Grade.NONE] = f"a small change (less than a factor of {math.exp(MILD):.3g})"
        others = [names[k] for k in Grade if outcome.least <= k <= outcome.most]
        others.remove(names[outcome.grade])
        short += f" It could also be {' or '.join(others)}, by the 95 % intervals over {inputs}."
    ends = in_words(outcome.low, outcome.high, outcome.inputs, factor_text)
    moved = (
        f"HFC/LFC (differences between tokens over what they share) goes from {first:.3g} to "
        f"{last:.3g} over {outcome.depth} layer{'' if outcome.depth == 1 else 's'}, a factor of "
        f"{factor_text(outcome.change)} ({ends}); the mean cosine between tokens goes from "
        f"{start:.3f} to {end:.3f}"
    )
    told = outcome.grade is not Grade.NONE and outcome.depth > 1
    if told and math.isfinite(outcome.layer_change):
        step = factor_text(outcome.layer_change)
        moved += f"; the largest step is in layer {outcome.layer}, a factor of {step}"
    details = [(f"{moved}.", "measured")]
    if outcome.against is not None:
        (before, since), (after, to) = outcome.against
        way = "falls" if to < since else "rises"
        begins = f"after layer {before}" if before else "at the input"
        counter = f"On the way it {way} from {since:.3g} {begins} to {to:.3g} after layer {after}."
        details.append((counter, "measured"))
    if outcome.grade < 0 and all(map(math.isfinite, apart)):
        rest = (
            "Without the largest direction of each state (of its singular values) the mean cosine "
            f"goes from {apart[0]:.3f} to {apart[1]:.3f} (over {over})."
        )
        details.append((rest, "measured"))
    return Reply(question, short, tuple(details))


def by_what(outcome: Answer, sublayers: tuple[float, float], heads: Sequence[str] = ()) -> Reply:
    """Which parts smooth and which sharpen; sublayers: the mean changes by attention and FFN, said
    where their parts were not measured; heads: which of them smooth, in sentences."""
    question, cause = "By what?", outcome.cause
    if cause is None:
        attention, ffn = map(signed, sublayers)
        parts = f"Change of ln HFC/LFC by attention sublayers {attention}, by FFN sublayers {ffn}."
        short = "The parts of its layers were not measured."
        return Reply(question, short, ((parts, "measured"),))
    large = sorted(
        (k for k, x in cause.sums.items() if abs(x) >= MILD), key=lambda k: -abs(cause.sums[k])
    )
    short = "no part of its layers moves it far"
    if large:
        first = cause.sums[large[0]] > 0
        sides = ([k for k in large if (cause.sums[k] > 0) == up] for up in (first, not first))
        short = ", but ".join(_together(cause, names) for names in sides if names)
    # In whose number the gains in front of an FFN stand (`answer.CAUSES`).
    own = PARTS | {"ffn": ("the FFN (with any gains of its norm)", "s")}
    named = POST if cause.placement == "post" else own
    listed = ", ".join(f"{named[name][0]} {signed(x)}" for name, x in cause.sums.items())
    over = "one input" if cause.inputs == 1 else f"{cause.inputs} inputs"
    every = f" ({signed(outcome.change)} on all {outcome.inputs})"
    unsure = bool(large) and not cause.largest
    parts = (
        f"On {over} ln HFC/LFC changes by {signed(cause.change)}"
        f"{every * (cause.inputs < outcome.inputs)}. By part: {listed}"
        f"{'; these inputs do not show which part is the largest' * unsure}. "
        "Switched on in another order they split otherwise."
    )
    details = tuple((words, "measured") for words in (parts, *heads) if words)
    return Reply(question, _sentence(short), details)


def _together(cause: Cause, names: Sequence[str]) -> str:
    """'attention's mixing smooths, and less so the FFN', those first that do most."""
    parts = POST if cause.placement == "post" else PARTS
    (first, ending), *others = (parts[name] for name in names)
    verb = "sharpen" if cause.sums[names[0]] > 0 else "smooth"
    less = ", and less so " + " and ".join(name for name, _ in others) if others else ""
    return f"{first} {verb}{ending}{less}"


def what_to_try(tried: Sequence[Advice], outcome: Answer) -> Reply:
    """The first thing to try; the others, and how each is known."""
    question = "What to try?"
    if not tried:
        unknown = outcome.grade is None or outcome.certainty == "cannot tell"
        short = "Nothing yet: these inputs do not show whether it smooths."
        if outcome.grade is not None and outcome.inputs < FEWEST:
            short = f"Nothing yet: give at least {FEWEST} inputs."
        return Reply(question, short if unknown else "Nothing: there is no smoothing to undo.")
    first, *others = tried
    details = [(_sentence(words), known) for words, known in first.grounds if words != known]
    for each in others:
        how = f" ({each.how})" if each.how != each.known else ""
        details.append((_sentence(each.words + how), each.known))
    none = outcome.grade is not None and outcome.grade >= Grade.NONE
    short = "No smoothing to undo. " * none + _sentence(first.words)
    return Reply(question, short, tuple(details) or (("", first.known),))


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:].rstrip('.')}."


def of_spectra(outcome: Answer, share: float | None, noun: str, own: bool = False) -> str:
    """What the spectra of attention and H say, and how that fits what was measured.

    share: of the (input, layer) cases in which consensus dominates; None: no spectra were taken,
    but, where own is said, those of the heads that are named.
    """
    if share is None:
        only = "No spectra of whole layers were taken, only those of the heads named above."
        return only if own else "No spectra were taken."
    head = (
        f"In the spectra of attention and H alone (reading E2: no norm, no FFN, one layer repeated "
        f"for ever) consensus dominates {100 * share:.1f} % of the ({noun}, layer) cases"
    )
    cause = outcome.cause
    if cause is None:
        return f"{head}; whether the mixing follows them was not measured."
    mixing = cause.sums["mixing"]
    if abs(mixing) < MILD:
        return f"{head}; within this depth the mixing by itself hardly acts ({signed(mixing)})."
    verb = "smooths" if mixing < 0 else "sharpens"
    if (share > 0.5) != (mixing < 0):
        return (
            f"{head}; within this depth the mixing by itself {verb} ({signed(mixing)}): the limit "
            "that they name is not what these layers do."
        )
    rest = cause.change - mixing
    words = (
        f"{head}, and the mixing by itself {verb} ({signed(mixing)}), which agrees in direction; "
        "of its size in each layer that says nothing"
    )
    if rest * mixing >= 0 or abs(rest) < MILD:
        return f"{words}."
    share = abs(rest / mixing)
    undone = "undoes it" if share >= 1 else f"takes back {100 * share:.0f} % of it"
    return f"{words}; what they do not see {undone} ({signed(rest)})."


def of_depth(outcome: Answer) -> str:
    """Whether collapse is reached within this depth."""
    meant = f"mean cosine {COLLAPSED_COSINE} or more, HFC/LFC {COLLAPSED_RATIO} or less"
    if (first := outcome.collapsed_from) is not None:
        start = f"layer {first}" if first else "the input"
        return f"Its tokens count as one ({meant}) from {start} on."
    if math.isnan(outcome.closest_cosine):
        return ""
    return (
        f"Its {outcome.depth} layers do not end in collapse ({meant}); after a layer the mean "
        f"cosine is at most {outcome.closest_cosine:.3f} (layer {outcome.closest})."
    )


def of_sinks(table: pd.DataFrame, inputs: int, noun: str, registers: int = 0) -> str:
    """What the last layer is without its largest direction (T4g), and without registers."""
    if not inputs:
        return ""
    last, over = table.iloc[-1], first_inputs(inputs, noun)
    words = (
        f"Without its largest direction, which has {100 * last['sink_share']:.0f} % of the sum of "
        f"the singular values (over {over}), the last layer has mean cosine "
        f"{last['cos_mean_desunk']:.3f} and effective rank {last['effective_rank_desunk']:.1f}; "
        f"raw {last['cos_mean']:.3f} and {last['effective_rank']:.1f}."
    )
    if registers:
        words += (
            f" Its patches alone, without CLS and the {registers} registers, have "
            f"{last['cos_mean_patches']:.3f} and {last['effective_rank_patches']:.1f}, and without "
            f"their largest direction {last['cos_mean_desunk_patches']:.3f} and "
            f"{last['effective_rank_desunk_patches']:.1f}."
        )
    return words


def first_inputs(inputs: int, noun: str) -> str:
    return f"the first {noun}" if inputs == 1 else f"the first {inputs} {noun}s"


def of_sink_attention(table: pd.DataFrame, inputs: int, noun: str) -> str:
    """What stands in place of a verdict where learned sinks take a part of the attention."""
    if "row_sum" not in table:
        return ""
    inner, over = table.iloc[1:], first_inputs(inputs, noun)
    return (
        f"Its attention has sinks: its rows sum to {inner['row_sum'].mean():.2f} in the mean (over "
        f"{over}), so that consensus is no mode of it and no verdict is given; the largest |a| "
        f"of a layer is {inner['attention_radius'].max():.3f}, the largest |1 + h a| "
        f"{inner['operator_radius'].max():.3f}."
    )


def of_rank(table: pd.DataFrame) -> str:
    """Where the effective rank still grows with the number of tokens."""
    growing = table[table["rank_growth"] > CONVERGED] if "rank_growth" in table else table[:0]
    if growing.empty:
        return ""
    layers = _runs(list(growing["layer"]))
    return (
        f"After layers {layers} (0: the input) the effective rank still grows "
        f"with the number of tokens: twice as many have up to {growing['rank_growth'].max():.2f} "
        "times the rank."
    )


def of_tokens(table: pd.DataFrame) -> str:
    """How many tokens have come together after the last layer."""
    if "merged_share" not in table:
        return ""
    first, last = (100 * float(table["merged_share"].iloc[k]) for k in (0, -1))
    return (
        f"After the last layer {last:.0f} % of the tokens have another within cosine {TOGETHER}; "
        f"at the input {first:.0f} % have."
    )


def of_words(merged: pd.DataFrame, depth: int, noun: str) -> str:
    """Which tokens are in the largest cluster of the first input after the last layer."""
    here = merged if merged.empty else merged.query("input == cluster == 0 and layer == @depth")
    if here.empty:
        return ""
    words = shortened(str(here["words"].iloc[0]), WORDS)
    return f"The largest cluster of the first {noun} then has {here['tokens'].iloc[0]}: {words}."


def _runs(layers: list[int]) -> str:
    """'0 to 3, 7'."""
    runs = groupby(enumerate(layers), key=lambda each: each[1] - each[0])
    parts = [[layer for _, layer in run] for _, run in runs]
    return ", ".join(f"{p[0]} to {p[-1]}" if len(p) > 1 else str(p[0]) for p in parts)


CONVENTIONS = {
    "residual_stream": "X after each layer, before the norm of the next; layer 0: in front of all; "
    "with Post-LN, X after the norm of each sublayer",
    "tokens": "all tokens, with CLS where there is one, without padding; columns *_without_cls "
    "leave CLS out",
    "hfc_lfc": "Frobenius norms of X - 1 m and 1 m, m the mean over the tokens; natural log; "
    "the mean over inputs is the geometric one, exp of the mean of the logarithm, in every table",
    "cosines": "over pairs of distinct tokens; cos signed, cos_abs absolute",
    "effective_rank": "exp of the entropy of the singular values over their sum",
    "intervals": "_low and _high: 95 % interval of the mean by Student's t, over all inputs "
    "(`images`), of the account's parts over `accounted` of them, of ranks and what is looked at "
    "closely (the heads too) over `closer`; missing where there are fewer than five",
    "grades": "by convention, of the change of ln HFC/LFC: none below "
    f"{MILD:.3f} (a factor of 1.25), strong from {STRONG:.3f} (2) on where the mean cosine at the "
    f"end is {AGREE} or more for smoothing, less for sharpening, else mild; collapsed: mean cosine "
    f"{COLLAPSED_COSINE} or more and HFC/LFC {COLLAPSED_RATIO} or less at the end. What is not "
    "told: the grades at the ends of the 95 % intervals of the change, the cosine and the ratio, "
    "each by itself, differ",
    "causes": "sums of the account: mixing (attention_body), scales (of both sublayers), gains (of "
    "attention's norm, with Post-LN of both norms), ffn (ffn_body and, with the norm in front, its "
    "gains, which are one with the first matrix); named where the 95 % interval of its difference "
    "to every other lies on one side. The account switches body, scales and gains on in this "
    "order; another order splits otherwise",
    "desunk": "_desunk: of X without its largest direction, X - sigma_1 u_1 v_1^T (T4g); "
    "sink_share: sigma_1 over the sum of the singular values; *_without_first: without position 0 "
    "(CLS, where there is one); *_without_registers: without the registers; *_patches: without "
    "both; "
    f"*_without_large: without the tokens of more than {LARGE:g} times the median norm, "
    "large_tokens of them; over the inputs looked at closely",
    "sinks in attention": "where learned sinks take a part of it: row_sum, the mean sum of its "
    "rows; attention_radius, the largest |a|, and operator_radius, the largest |1 + h a|, of the "
    "mean over heads and H whole; no verdict, since consensus is no mode",
    "rank_growth": "effective rank of all tokens over effective_rank_half, that of every second "
    f"one; above {CONVERGED} it has not converged in the number of tokens",
    "heads": "log_change: of ln HFC/LFC after the attention sublayer by the head's being there, "
    "the others kept (they do not sum); share, radius (rho_Q), rho_consensus, margin (rho_C - "
    "rho_Q): of the head's own A and H; dobrushin: half the largest l1 distance between two rows "
    "of A, 1 at most; entropy of its rows over the logarithm of the "
    "tokens in sight; sink_mass: mean attention to its sink_token",
    "together": f"tokens joined where their cosine is {TOGETHER} or more, a cluster is what is "
    "connected so; merged_share: of the tokens in a cluster of two or more; largest_cluster: of "
    "those in the largest",
    "linear": "share of the layer's output (_with_residual) or of output - input "
    "(_without_residual), tokens centred, that one linear map of its input explains; fitted on "
    "every second input, scored on the others, both ways; large tokens weigh most",
    "bands": "_p05 and _p95: 5th and 95th percentile of the inputs (`images`)",
    "log_change": "of log HFC/LFC over a sublayer. _body: with one scale for all tokens and unit "
    "gains in its norm; _scales: what each token's own scale adds; _gains: what the norm's gain "
    "and shift add; the three sum to the sublayer's change over the inputs accounted for",
    "dominance": "reading E2: a case is an (input, layer); A the mean over heads, H whole, the "
    "maximum over all pairs (j, i); norm and FFN are not in it",
    "predicted_log_rate": "log(rho_quotient / rho_consensus), median over inputs",
    "outside_share": "share of h_j, counted alone, at which consensus does not lose; for real h "
    "those outside (-safe_interval, 0)",
    "regions": "share of the eigenvalues of H (h_*) and of the heads' own H (head_h_*): zero "
    "(exact), universal_disc |h + 1/2| <= 1/2, positive real part, other",
    "cos_start": "cosine of H with its random start before training (1: it did not turn); null: "
    "start unknown",
    "asymmetry": "||H - H^T||_F / ||H + H^T||_F: 0 symmetric, about 1 for independent entries, inf "
    "antisymmetric",
    "departure_from_normality": "sqrt(||H||_F^2 - sum |h|^2) / ||H||_F (Henrici)",
    "attention": "dobrushin and subdominant modulus of the mean over heads; drift: its relative "
    "change from the layer before (Frobenius)",
    "tilt": "gain over the layer of the mean |cos| of the tokens with the principal direction of H "
    "by |h| (tilt_modulus) or |1 + h| (tilt_residual); a complex pair spans a plane; *_random: the "
    "same for random directions",
}

# Columns of the table on the page and on the terminal, where they were measured.
NARROW = {
    "layer": "layer",
    "hfc_lfc": "HFC/LFC",
    "cos_mean": "cosine",
    "effective_rank": "rank",
    "log_change_attention": "attention",
    "log_change_ffn": "FFN",
}
WIDE = {
    "log_change_attention_body": "mixing",
    "log_change_attention_scales": "att. scales",
    "log_change_attention_gains": "att. gains",
    "log_change_ffn_body": "FFN itself",
    "log_change_ffn_scales": "FFN scales",
    "log_change_ffn_gains": "FFN gains",
    "cos_min": "cos min",
    "cos_mean_desunk": "cosine w/o largest",
    "effective_rank_desunk": "rank w/o largest",
    "sink_share": "sink share",
    "merged_share": "merged",
    "rank_growth": "rank growth",
    "row_sum": "row sum",
    "attention_radius": "max |a|",
    "operator_radius": "max |1 + h a|",
    "linear_with_residual": "linear",
    "linear_without_residual": "linear w/o res.",
    "consensus_share": "consensus %",
    "rho_consensus": "rho_C",
    "rho_quotient_median": "rho_Q",
    "h_real_min": "Re h min",
    "h_real_max": "Re h max",
    "safe_interval_min": "safe s",
    "cos_start": "cos start",
}

# The columns of `heads`, on the page.
HEADS = {
    "layer": "layer",
    "head": "head",
    "log_change": "ln HFC/LFC",
    "log_change_low": "95 % from",
    "log_change_high": "95 % to",
    "share": "consensus",
    "radius": "rho_Q",
    "rho_consensus": "rho_C",
    "margin": "margin",
    "dobrushin": "Dobrushin",
    "entropy": "entropy",
    "sink_mass": "sink mass",
    "sink_token": "sink token",
}

# The account of a layer, log_change_*: each part's colour (of `PALETTE`) and its words.
ACCOUNT = {
    "attention_body": ("blue", "attention: mixing"),
    "attention_scales": ("sky", "attention: token scales"),
    "attention_gains": ("grey", "attention: gains"),
    "ffn_body": ("vermillion", "FFN: itself"),
    "ffn_scales": ("orange", "FFN: token scales"),
    "ffn_gains": ("purple", "FFN: gains"),
}
# Where the norms' shares were not measured.
SUBLAYERS = {"attention": ("blue", "attention"), "ffn": ("vermillion", "FFN")}
