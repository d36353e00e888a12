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
    "exponents": "rates of changing layers: Lyapunov exponents against measured slopes",
    "streams": "several mixed residual streams: do tokens smooth, do the streams become one",
    "prove": "run the ledger of claims, or put claims of your own to the test",
    "sweep": "the outcome of every point of a grid of parameters, as a table",
    "train": "train a shared-value ViT on digits or CIFAR: H free, of one sign or in a region",
    "study": "do forms of H that cannot smooth train better: hypotheses first, then runs",
    "inspect": "does a trained model smooth, where, by which sublayer, and why",
    "stability": "do small differences between tokens grow or die, layer by layer",
    "loop": "a trained model's block applied again and again; do its tokens collapse",
    "flips": "the sign of a norm's gain flipped in every layer, predicted and measured",
    "certify-model": "certified verdicts on the attention of a trained vision model",
    "enclose": "metrics of every layer of a trained model, proved for an input or a box of them",
    "readings": "which eigenvalue dominates a trained model's layers, in every reading of Table 1",
    "ladder": "which cheap theory predicts the smoothing of a trained model, scored",
    "remedies": "what each remedy against oversmoothing does to the spectrum, and its cost",
    "tilt": "do a trained model's tokens tilt as in the power method, and can they be steered",
    "steer": "from which strength on a rank-one change of F turns the tokens of linear layers",
    "graphs": "smoothing on graphs by homophily and h, and a node classifier either way",
    "figures": "draw the figures and tables, each with its data",
    "explorer": "a page to drag eigenvalues of H and see what smooths",
    "reproduce": "the main job: train, simulate, check, draw, and the page",
}

# One line of each that can be copied, at the end of its help.
EXAMPLES = {
    "verdict": "oversmoothing verdict --example GT4 --depth 1 10 1e6",
    "certify": "oversmoothing certify --example GT4 --report cert.json",
    "rates": "oversmoothing rates",
    "check": "oversmoothing check cert.json",
    "simulate": "oversmoothing simulate --attention causal --depth 1e6 --out runs",
    "heads": "oversmoothing heads --heads 8 --attention state --depth 200 --out runs",
    "exponents": "oversmoothing exponents --ensemble iid following --out runs",
    "streams": "oversmoothing streams --mixing orthogonal --streams 4 --depth 1e4 --out runs",
    "prove": "oversmoothing prove --init mine.py",
    "sweep": "oversmoothing sweep --example heads --out runs",
    "train": "oversmoothing train --variant vit- --out runs",
    "study": "oversmoothing study depth --estimate",
    "inspect": "oversmoothing inspect FOLDER --images PICTURES --count 100",
    "stability": "oversmoothing stability FOLDER --images PICTURES --count 8",
    "loop": "oversmoothing loop FOLDER --images PICTURES --count 20 --loops 200",
    "flips": "oversmoothing flips FOLDER --images PICTURES --count 40",
    "certify-model": "oversmoothing certify-model FOLDER --images PICTURES --count 5",
    "enclose": "oversmoothing enclose FOLDER --images PICTURES --count 1",
    "readings": "oversmoothing readings FOLDER --images PICTURES --readings E1 E2",
    "ladder": "oversmoothing ladder FOLDER --images PICTURES --out runs",
    "remedies": "oversmoothing remedies --only attnscale contranorm",
    "tilt": "oversmoothing tilt FOLDER --images PICTURES --count 50 --out runs",
    "steer": "oversmoothing steer --draws 20",
    "graphs": "oversmoothing graphs --count 500 --out runs",
    "figures": "oversmoothing figures --only lambda_plane --out figures",
    "explorer": "oversmoothing explorer --out results",
    "reproduce": "oversmoothing reproduce --out results",
}

# Commands of the release before this one, and what to type now.
GONE = {"bench": "run `make bench` in a clone (python -m benchmarks)"}
