"""The commands of `oversmoothing`, one module each, in the order in which they build up.

A module holds one function of its command's name; its signature is the command, and what options
of one name mean is said once, in `options`.
"""

SUMMARIES = {
    "verdict": "does X' = X + A X H^T oversmooth, and why",
    "certify": "a rigorous verdict on a case, as a file that `check` has accepted",
    "rates": "rates and depths, predicted against measured",
    "check": "recompute a certificate by other means",
    "simulate": "run one drawn case to any depth and hold it against the closed form",
    "heads": "run many heads and changing layers beside what the theory says",
    "prove": "run the ledger of claims: proofs, counterexamples, searches, simulations",
    "sweep": "the outcome of every point of a grid of parameters, as a table",
    "train": "train the digits models: ordinary, smoothing, sharpening",
    "inspect": "does a trained model smooth, where, by which sublayer, and why",
    "certify-model": "certified verdicts on the attention of a trained vision model",
    "readings": "which eigenvalue dominates a trained model's layers, in every reading of Table 1",
    "ladder": "which cheap theory predicts the smoothing of a trained model, scored",
    "bench": "speed and accuracy against their targets, as ratios in one run",
    "figures": "draw the figures and tables, each with its data",
    "reproduce": "the main job: train, simulate, check, draw, and the page",
}
