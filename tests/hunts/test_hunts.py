"""No drawn or adversarial sequence breaks a certificate; a bound made smaller is broken."""

from __future__ import annotations

import numpy as np
import pytest

from . import sequences
from .sequences import HUNTS, hunt


@pytest.mark.parametrize("kind", HUNTS)
def test_no_sequence_breaks_the_certificate(kind: str) -> None:
    found = hunt(kind, 2000, 2026)
    assert found.sequences == 2000 and not found.violations
    # Adversaries that come near the bound are what a hunt is for.
    assert found.tightest > 0.9


def test_contraction_by_less_than_dobrushin_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    true = sequences.dobrushin

    def less(A: np.ndarray) -> np.ndarray:
        return 0.98 * true(A)

    monkeypatch.setattr(sequences, "dobrushin", less)
    assert hunt("streams", 500, 1).violations
    assert hunt("streams-any-p", 500, 1).violations


def test_attention_that_mixes_less_than_said_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    true = sequences.attention_of
    monkeypatch.setattr(
        sequences, "attention_of", lambda rng, x, tau: true(rng, x, np.full_like(tau, 0.9))
    )
    assert hunt("one-feature", 2000, 1).violations
