"""A start that repeated attention does not smooth."""

from oversmoothing.theory.proofs.kit import by, equal, exact, given, spectra

_A, _X = exact.matrix("1/2 1/2; 1/4 3/4"), exact.column("2 -1")


def _eigenvector() -> None:
    """pi = (1, 2)/3, so pi^T X = 0 for X = (2, -1), and A X = X/4."""
    equal(exact.weighted_mean(spectra.stationary(_A), _X), [0])
    equal(exact.product(_A, _X), exact.scaled("1/4", _X))


def _ratio() -> None:
    """So A^t X = 4^-t X, with the mean 1/2 and -+3/2 around it: HFC/LFC = 3 for every t."""
    hfc, lfc = exact.squared_norms(_X)
    equal(hfc, 9 * lfc)


CLAIM = by.refuted(
    name="N-2203.05962-every-start",
    statement="Every softmax A is a low-pass filter for every input: HFC/LFC of A^t x tends to 0 "
    "for all x (our reading; whether the paper leaves out any x is not known to us).",
    latex=r"\forall x:\ \|\mathrm{HFC}[A^tx]\|/\|\mathrm{LFC}[A^tx]\|\to0",
    source="arXiv 2203.05962, attention as a low-pass filter (abstract), our reading",
    wording="our reading of the abstract; for which x the paper proves it was not at hand",
    hypotheses=(given.POSITIVE, given.TWO_TOKENS, given.REAL_A, given.BOTH_PARTS),
    title="an x with mean, and without pi-mean",
    at=((_A, exact.matrix("1"), _X),),
    steps=(_eigenvector, _ratio),
    repaired_by="N-2203.05962-low-pass",
    further="Such x are a hyperplane: for almost every x the statement holds.",
)
