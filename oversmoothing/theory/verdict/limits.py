"""What is said of a trajectory as L grows: what HFC/LFC tends to, its limit, the rank (T4, T5a)."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What HFC/LFC does as L grows, and the asymptotic rank of X_L (T4c).

    tends_to: "zero", "constant", "infinity", "oscillates" or None. limit: of HFC/LFC (inf where it
    diverges), None where there is none.
    """

    tends_to: str | None
    limit: float | None
    limit_rank: int | None

    @property
    def whole(self) -> bool:
        """Whether nothing is left open."""
        missing = self.tends_to == "constant" and self.limit is None
        return not missing and None not in (self.tends_to, self.limit_rank)


UNKNOWN = Limits(None, None, None)


def agreed(first: Limits, second: Limits) -> Limits:
    """What two draws of X_0 have in common: None where they differ."""
    a, b = first.limit, second.limit
    same = a is not None and b is not None and (a == b or abs(a - b) <= 1e-8 * min(a, b))
    return Limits(
        first.tends_to if first.tends_to == second.tends_to else None,
        a if same else None,
        first.limit_rank if first.limit_rank == second.limit_rank else None,
    )
