"""What a claim is made of, and how it is run.

A claim (`claim.Claim`) is a section of a chapter, theory/claims/t2.md with t2.py beside it:
statement, hypotheses, source, evidence; `chapter` tells how it is written, and reads it. A claim of
one's own, or of a folder of theory/claims, is made in Python and reads as the proof does:

    from oversmoothing.theory.proofs.kit import Claim, by, draw, equal, exact, given

    def _doubles() -> None:
        \"\"\"[2; instance] h = 1 doubles the mean in every layer.\"\"\"   # as the reader sees it
        X = exact.layer(exact.AA, [[1]], [[1], [2]], 5)     # as the machine executes it
        equal(X[0][0] + X[1][0], 3 * 2**5)

    CLAIM = Claim(
        clauses=("Consensus wins if h > 0.", "For h = 1 the mean doubles."),
        ...,
        hypotheses=(given.POSITIVE, given.REAL_A),
        evidence=(
            by.written("the mean", _doubles, "[2] c_L = c_0 (I + W)^L by T1d."),
            by.for_all(
                "h > 0 wins at consensus",
                given=(by.EIGENVALUE, "h > 0"),
                then="(1+h*a)**2 < (1+h)**2",
                at="h=1, a=1/2",
                covers=(1,),
            ).unless("h >= 0", without="h > 0", given="h >= 0", at="h=0, a=1/2"),
            by.searched("in fractions", _law, draw.attention(), at=given.of_attention),
        ),
    )

Where things are:
- `kit`: all that a claim needs, in one import; the names in brackets are the kit's.
- `by`: evidence, each piece for the clauses that it covers; none: it stands beside the proof.
  by.written(title, *steps): a step is a text, or a function (docstring: the text; body: the check,
  which asserts or returns a residual). The text begins with its clauses and, of a function, what
  the check covers: "[1, 2] ...", "[1; general] ...", "[1; fixed size] ...", "[1; instance] ...". A
  claim that it names (T1d) is one it rests on.
  by.Formal(theorem, clauses): what Coq's kernel checks in theory/formal.
  by.law(law, draws): drawn (A, H, X0) on which the law returns whether it holds; by.searched: a
  law of anything that is drawn, at an instance. by.Symbolic, by.Certified, by.Simulated: see
  `evidence`. by.for_all: a statement for all reals for z3 and cvc5, with false neighbours:
  `unless(change, without=..., given=..., then=..., at=...)` leaves out, replaces or adds
  hypotheses (given stands in the place of what is left out), or draws another conclusion; at: a
  witness. by.EIGENVALUE and the four by.CORNERS of T2c are shared.
- `hypotheses` (given): each shared hypothesis once, with its predicate and instances that violate
  it; given.Hypothesis, and given.condition as a decorator, make one that a claim has alone.
- `checks`: vanishes, is_zero, equal, meets; induction over L.
- `exact_spectrum` (spectra): eigenvalues of exact instances, their projectors, pi, verdicts from
  lists. `instances` (exact): matrices of fractions, the shared ones among them.
- `strategies` (draw): what searches draw.
- `reals`: queries, and false neighbours of what Coq proves, at points; `solver`: z3 and cvc5.
- `chapter`, `items`: Markdown as claims.
- `ledger`, `run`, `report`: all claims, how each stands, run and shown; `own`: those of a user's
  file; `fingerprint`: their text under version control, theory/claims/ledger.txt.
"""
