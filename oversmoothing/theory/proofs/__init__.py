"""What a claim is made of, and how it is run.

A claim (`claim.Claim`) is a section of a chapter, theory/claims/t2.md with t2.py beside it:
statement, hypotheses, source, evidence; `chapter` tells how it is written, and reads it. A claim of
one's own is made in Python, of what `kit` brings; `oversmoothing prove --init FILE.py` writes an
example of it that runs.

Where things are:
- `kit`: all that a claim needs, in one import; the names in brackets are the kit's.
- `by`: evidence, each piece for the clauses that it covers; none: it stands beside the proof. It is
  made in `evidence` (written, Symbolic, Certified, Simulated), `coq` (Formal), `search` (law,
  searched) and `reals` (for_all, with false neighbours).
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
