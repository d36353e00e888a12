"""The papers that claims are about: authors, year, title, and where they are found."""

from __future__ import annotations

import re

# By arXiv number: authors and year, and what the title begins with.
PAPERS = {
    "2103.03404": ("Dong et al. 2021", "Attention is not all you need"),
    "2203.05962": ("Wang et al. 2022", "Anti-oversmoothing in deep vision transformers"),
    "2206.03126": ("Noci et al. 2022", "Signal propagation in transformers"),
    "2206.10991": ("Di Giovanni et al. 2022", "Understanding convolution on graphs via energies"),
    "2305.05465": (
        "Geshkovski et al. 2023",
        "The emergence of clusters in self-attention dynamics",
    ),
    "2308.16800": ("Roth and Liebig 2023", "Rank collapse causes over-smoothing"),
    "2312.06182": ("Yu and Zhang 2023", "Why “classic” Transformers are shallow"),
    "2312.10794": ("Geshkovski et al. 2023", "A mathematical perspective on transformers"),
    "2401.04301": (
        "Dovonon et al. 2024",
        "Setting the Record Straight on Transformer Oversmoothing",
    ),
    "2405.18781": ("Wu et al. 2024", "On the role of attention masks and LayerNorm"),
    "2407.11876": ("Roth 2024", "Simplifying the theory on over-smoothing"),
    "2410.07799": ("Naderi et al. 2024", "Mind the gap"),
    "2410.10609": ("Arangath Joseph et al. 2024", "Lambda-skip connections"),
    "2502.04591": ("Zhang et al. 2025", "Are we measuring oversmoothing correctly?"),
    "2502.05795": ("Sun et al. 2025", "The curse of depth in large language models"),
    "2505.24333": ("Giorlandino and Goldt 2025", "Two failure modes of deep transformers"),
    "2510.22026": ("Karagodin et al. 2025", "Normalization in attention dynamics"),
    "2604.07925": ("Lapenna et al. 2026", "Sinkhorn doubly stochastic attention"),
    "2604.19028": ("Choi et al. 2026", "NodePFN"),
    "2604.23681": ("Cirrincione 2026", "Rank, head-channel non-identifiability"),
    "2605.25619": ("Li and Altafini 2026", "Analogies between Transformer layers and power method"),
}
_NUMBER = re.compile(r"^[PN]-(\d{4}\.\d{5})(v\d+)?-")


def cited(claim: str) -> str:
    """Whom a claim of that name is about, "Dovonon et al. 2024", or "this project".

    Raises KeyError for a paper that is not listed.
    """
    number = _NUMBER.match(claim)
    if number is not None:
        return PAPERS[number[1]][0]
    return "Lean preprint 2026" if claim.startswith("N-clustering2026") else "this project"


def address(claim: str) -> str:
    """Where that paper stands, in the version that the claim is about; "" where it has none."""
    number = _NUMBER.match(claim)
    return "" if number is None else f"https://arxiv.org/abs/{number[1]}{number[2] or ''}"
