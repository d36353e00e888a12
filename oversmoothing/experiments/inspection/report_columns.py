"""What the numbers of a report mean, and which of them its tables show."""

from oversmoothing.experiments.inspection.answer import (
    AGREE,
    COLLAPSED_COSINE,
    COLLAPSED_RATIO,
    MILD,
    STRONG,
)
from oversmoothing.experiments.inspection.states import CONVERGED, LARGE
from oversmoothing.experiments.inspection.tokens import TOGETHER

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
    "(`images`), of the account's parts over `accounted` of them, of what is looked at closely "
    "(the heads too) over `closer`; missing where there are fewer than five",
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
    "rho_Q): of the head's own A and H; dobrushin; entropy of its rows over the logarithm of the "
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
    "cos_start": "cosine of H with where it was drawn before training (1: it did not turn); null: "
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
    "log_change_ffn_body": "FFN body",
    "log_change_ffn_scales": "FFN scales",
    "log_change_ffn_gains": "FFN gains",
    "cos_min": "cos min",
    "cos_mean_desunk": "cos desunk",
    "effective_rank_desunk": "rank desunk",
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
    "log_change_low": "low",
    "log_change_high": "high",
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
    "attention_gains": ("light", "attention: gains"),
    "ffn_body": ("vermillion", "FFN: itself"),
    "ffn_scales": ("orange", "FFN: token scales"),
    "ffn_gains": ("purple", "FFN: gains"),
}
# Where the norms' shares were not measured.
SUBLAYERS = {"attention": ("blue", "attention"), "ffn": ("vermillion", "FFN")}
