"""What a claim is made of, and how it is run.

A claim (`claim.Claim`) is the CLAIM of one module of theory/claims: a statement, its hypotheses,
its source and its evidence. A module reads from the top as the proof does:

    from oversmoothing.theory.numbers.exact_matrix import layer, matrix, product
    from oversmoothing.theory.proofs import strategies as draw
    from oversmoothing.theory.proofs.checks import equal, vanishes
    from oversmoothing.theory.proofs.claim import Claim, Status
    from oversmoothing.theory.proofs.evidence import Searched
    from oversmoothing.theory.proofs.for_all import EIGENVALUE, for_all
    from oversmoothing.theory.proofs.hypotheses import POSITIVE, REAL_A
    from oversmoothing.theory.proofs.instances import AA
    from oversmoothing.theory.proofs.written import written

    def _doubles() -> None:
        \"\"\"h = 1 doubles the mean in every layer.\"\"\"   # the step, as the reader sees it
        X = layer(AA, matrix("1"), matrix("1; 2"), 5)       # the step, as the machine executes it
        equal(X[0][0] + X[1][0], 3 * 2**5)

    CLAIM = Claim(
        ...,
        hypotheses=(POSITIVE, REAL_A),
        evidence=(
            written("the mean", _doubles, "What no machine checks, in words."),
            for_all(
                "h a",
                given=(EIGENVALUE, "h > 0"),
                then="(1+h*a)**2 < (1+h)**2",
                name="h > 0 wins at consensus",
                at="h=1, a=1/2",
            ).unless("h >= 0", without="h > 0", given="h >= 0", at="h=0, a=1/2"),
            Searched("in fractions", draw.fractions(0, 3), _law),
        ),
    )

Where things are:
- `evidence`: Written, Symbolic, Certified, Searched, Simulated, Counterexample.
- `written`: written(title, *steps) and counterexample(title, numbers, *steps): a step is a function
  (docstring: the words; body: the check, which asserts or returns a residual), words alone, or
  `Step(words, check)`. refuted(...) is the whole claim that a paper's statement fails;
  hypotheses_hold(H, A, H, X0) the step that an instance meets its hypotheses.
- `for_all`: a statement for all reals for z3 and cvc5, with false neighbours: `unless(change,
  without=..., given=..., then=..., at=...)` leaves out, replaces or adds hypotheses (given stands
  in the place of what is left out), or draws another conclusion; at: a witness. EIGENVALUE and the
  four CORNERS of T2c are shared.
- `hypotheses`: each shared hypothesis once, with its predicate; `instances`: the shared matrices.
- `checks`: vanishes, is_zero, equal, holds, certain, meets; `all_depths`: induction over L.
- `exact_spectrum`: eigenvalues of exact instances, their projectors, pi, verdicts from lists.
- `strategies`: what searches draw. `theory.numbers.exact_matrix`: matrices of fractions.
- `ledger`, `running`, `thorough`, `report`, `page`: all claims, run and shown.
"""
