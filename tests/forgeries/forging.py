"""Forged certificates: parts exchanged, the digest computed anew."""

from __future__ import annotations

import json
from typing import Any

from oversmoothing.theory.certificate import digest
from oversmoothing.theory.checker.check import check_certificate
from oversmoothing.theory.checker.reading import NotACertificate


def copied(body: dict[str, Any]) -> dict[str, Any]:
    """A copy that shares nothing."""
    found: dict[str, Any] = json.loads(json.dumps(body))
    return found


def sealed(body: dict[str, Any]) -> str:
    """The text of a certificate with a digest that fits."""
    return json.dumps(body | {"digest": digest(body)})


def refused(text: str) -> bool:
    """Whether the checker refuses it, as false, as more than it confirms, or as no certificate."""
    try:
        return not check_certificate(text).accepted
    except NotACertificate:
        return True
