"""What one X_0 leads to: limits, the verdict over the modes it contains, its tokens (T4e, T14).

An X_0 whose resolvent is too large is looked at by spectral projectors (T4c, T14e-g). With q_a and
q_h what annihilates the other eigenvalues, it contains the pair (a, h) iff q_a(A) X_0 q_h(H)^T is
not 0: that is seen modulo a prime, that it is 0 in integers. Several heads act on vec X_0 as one H.

Where A and H are diagonalisable, E_a X_0 E_h^T is all that X_0 contains of the pair, and grows like
(1 + h a)^L alone. E_a = prod (A - b) / (a - b) over the other eigenvalues b, in balls. What turns
is left open.
"""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache, reduce
from itertools import combinations
from operator import mul
from typing import Any

import flint
import numpy as np

from oversmoothing.theory.layer.attention import rational_quotient
from oversmoothing.theory.layer.layer import Entries, Layer
from oversmoothing.theory.numbers import exact
from oversmoothing.theory.numbers.rounding import at_precision, doublings, norm
from oversmoothing.theory.spectra.algebraic import Eigenvalue, Factor
from oversmoothing.theory.spectra.heads import ManyHeads
from oversmoothing.theory.support.errors import CloseRootsError
from oversmoothing.theory.verdict import answer as sentences, by_fractions, leading, resolvent
from oversmoothing.theory.verdict.by_cells import decided_in_cell
from oversmoothing.theory.verdict.by_discs import CellDiscs, Comparison, cell_discs
from oversmoothing.theory.verdict.by_fractions import Leading, Mode
from oversmoothing.theory.verdict.cosines import CosineLimit, token_limits
from oversmoothing.theory.verdict.disc_modes import heads_contained, limits_of_heads
from oversmoothing.theory.verdict.disc_start import DiscStart, onset_of_cell
from oversmoothing.theory.verdict.formulas import COMPARED, Outcome, outcome_of_sign
from oversmoothing.theory.verdict.limits import UNKNOWN, ZERO, Decided, Limits, infinite, merged
from oversmoothing.theory.verdict.start import Content, fixed_means, start_content

# States of short binary numbers up to so many entries are looked at token by token: under a second.
_SHORT_STATE = 24
# Others that an X_0 has whatever leads, in words.
_SETTLED = {Outcome.UNDEFINED: sentences.VANISHES, Outcome.TRIVIAL: sentences.AT_CONSENSUS}


def drawn_limits(case: Layer) -> Iterator[Limits]:
    """Limits of two seeded draws of X_0, in fractions."""
    rng = np.random.default_rng(2401_04301)
    for _ in range(2):
        draw = rng.integers(-(10**6), 10**6, size=(case.n, case.d))
        start, limits = [[Fraction(int(x)) for x in row] for row in draw], UNKNOWN
        content = _content(case, start, resolvent.QUICK_WORK, False)
        if content is None and _is_plain(case):
            limits = by_projectors(case, start).limits
        if content is None and limits.tends_to is None:
            content, limits = _content(case, start, resolvent.LARGEST_WORK, False), UNKNOWN
        yield limits if content is None else content.limits


def limits_of_start(
    case: Layer, start: Entries, radii: Comparison, generic: Outcome, thorough: bool = False
) -> Decided:
    """What an X_0 (not 0) leads to (T4e), exactly where the layer is decidable.

    generic: the verdict for generic X_0, and radii what it rests on. thorough: also what is left
    out for its cost else.
    """
    if isinstance(case, ManyHeads) and not case.decidable:
        return _start_of_heads(case, start, radii, generic)
    if radii.cell is not None:
        return _with_short_numbers(_start_in_floats(start, radii.cell, generic), case, start)
    content = _content(case, start.fractions, math.inf if thorough else resolvent.QUICK_WORK)
    return _large_start(case, start, generic) if content is None else _of_content(content, case)


def _content(case: Layer, X0: exact.Matrix, work: float, begins: bool = True) -> Content | None:
    return start_content(case.rational_A, case.rational_H, X0, begins, case.others, work)


def _of_content(content: Content, case: Layer) -> Decided:
    outcome = content.outcome
    tokens = token_limits(content.tokens.growth, content.tokens.cosines, case.d)
    if outcome in _SETTLED:
        return Decided(outcome, content.limits, _SETTLED[outcome], tokens=tokens)
    return Decided(outcome, content.limits, sentences.shown(content.onset), content.onset, tokens)


def _with_short_numbers(answer: Decided, case: Layer, start: Entries) -> Decided:
    """What tokens do from binary64 numbers that mean what they say, and from which layer on X_0
    shows the same verdict: as from fractions. Rounding can turn a power of L, a phase or a cosine,
    so that nothing is said of the tokens of others."""
    short = case.as_fractions() if case.n * case.d <= _SHORT_STATE else None
    content: Content | None = None
    with suppress(CloseRootsError):
        if short is not None:
            content = _content(short, start.fractions, resolvent.LARGEST_WORK)
    if content is None:
        return answer
    told = _of_content(content, case)
    same = answer.outcome in COMPARED and told.outcome is answer.outcome
    own = told if same else answer
    return replace(answer, words=own.words, onset=own.onset, tokens=told.tokens)


def _large_start(case: Layer, start: Entries, generic: Outcome) -> Decided:
    """Where the resolvent is too large: by projectors, or by a larger one where these tell less;
    else an X_0 that contains, by discs, the mode which decides behaves as generic ones."""
    X0 = start.fractions
    if len(set(map(tuple, X0))) == 1:
        return _at_consensus(case, start)
    seconds = resolvent.resolvent_seconds(case.rational_A, case.rational_H, case.others)
    answer = by_projectors(case, X0)
    if answer.outcome is Outcome.UNDECIDED or not _is_plain(case):
        content = _content(case, X0, resolvent.LARGEST_WORK)
        if content is not None:
            return _of_content(content, case)
    if answer.outcome is Outcome.UNDECIDED and not case.others:
        # What holds for all layers and starts that round to these floats holds for this one.
        outcome = DiscStart(cell_discs(case), start.floats).decided(generic).outcome
        answer = Decided(outcome, ZERO if outcome is Outcome.SMOOTHING else UNKNOWN)
    words = sentences.TOO_MANY_MODES if answer.outcome is Outcome.UNDECIDED else answer.words
    return replace(answer, words=words + sentences.left_out_for_cost(seconds))


def _start_of_heads(case: ManyHeads, X: Entries, radii: Comparison, generic: Outcome) -> Decided:
    """Of several heads in floats, as far as discs or balls show which modes X_0 contains."""
    X0, smoothing = X.floats, generic is Outcome.SMOOTHING
    if (X0[0] == X0).all():
        return _at_consensus(case, X)
    known = radii.answer
    rest = known.rho_quotient if smoothing else known.rho_consensus
    # An estimate says of no mode that it leads.
    sure = known.status == "certified" and generic in (Outcome.SMOOTHING, Outcome.NON_SMOOTHING)
    if not sure or rest is None or not heads_contained(case, X0, rest + 2 * known.margin_error):
        return Decided(Outcome.UNDECIDED, UNKNOWN, sentences.NOT_SHOWN)
    return Decided(generic, ZERO if smoothing else limits_of_heads(case, X0))


def _start_in_floats(start: Entries, cell: CellDiscs, generic: Outcome) -> Decided:
    """From discs, and where they leave it open what all cases agree on that round to the floats."""
    case, X0 = cell.case, start.floats
    if (X0[0] == X0).all():
        return _at_consensus(case, start)
    discs = DiscStart(cell, X0)
    answer = discs.decided(generic)
    outcome, known = answer.outcome, answer.limits
    if outcome is not Outcome.SMOOTHING and not known.whole:
        shared = decided_in_cell(case, start, outcome is not Outcome.UNDECIDED)
        outcome = shared.outcome if outcome is Outcome.UNDECIDED else outcome
        known = merged(known, second=shared.limits)
        if known.tends_to is None and discs.means_fall(outcome, X0):
            known = infinite(known.limit_rank)
    if outcome is Outcome.UNDECIDED:
        return Decided(outcome, known, sentences.ILL_CONDITIONED)
    if known.tends_to == "infinity" and discs.balanced and not np.any([*map(math.fsum, X0.T)]):
        known = replace(known, reached="every")
    tends_to = "zero" if outcome is Outcome.SMOOTHING else known.tends_to
    begins = onset_of_cell(cell, X0, tends_to)
    return Decided(outcome, known, sentences.shown(begins), begins)


def _at_consensus(case: Layer, start: Entries) -> Decided:
    """X_0 = 1 c^T stays at consensus, whatever A is, with c' = c (I + W): exactly 0 from some depth
    on where c is in the nilpotent part of I + H, as given (T11.1)."""
    total = reduce(exact.plus, (H for _, H in case.others), case.rational_H)
    step = exact.to_flint(total).transpose() + exact.to_flint(exact.identity(case.d))
    c, W = (M.numer_denom()[0] for M in (exact.to_flint(start.fractions[:1]), step))
    bits = (max(map(abs, W.entries())) * case.d).bit_length()
    # After d layers it is 0 or never is, and what is not 0 modulo a prime is not 0.
    for prime in resolvent.PRIMES:
        state, modulo, layers = flint.nmod_mat(c, prime), flint.nmod_mat(W, prime), 0
        while state and layers < case.d:
            state, layers = state * modulo, layers + 1
        if state:
            return Decided(Outcome.TRIVIAL, ZERO, sentences.AT_CONSENSUS)
        if layers**4 * bits > resolvent.LARGEST_WORK:
            break
        if not reduce(mul, [W] * layers, c):
            return Decided(Outcome.UNDEFINED, UNKNOWN, sentences.VANISHES)
    return Decided(Outcome.UNDECIDED, UNKNOWN, sentences.TOO_MANY_MODES)


# ------------------------------------------------------------------------------- by projectors

# Bits with which projectors are taken, from the first on until what is not 0 is seen to be so.
_FIRST, _MOST = 256, 4096


def by_projectors(case: Layer, X0: exact.Matrix) -> Decided:
    """The answer for X_0 [n, d], its tokens not all alike, of a layer in fractions."""
    parts = _Parts(case, X0)
    consensus, quotient = parts.largest(True), parts.largest(False)
    if consensus is None or not quotient:
        return Decided(Outcome.UNDECIDED)
    sign = by_fractions.compare(consensus[0], quotient[0])[0] if consensus else -1
    outcome, leads = outcome_of_sign(sign), Leading(consensus, quotient, sign).dominant()
    if leads and leads[0].rational == 0:
        return Decided(Outcome.UNDEFINED, words=sentences.VANISHES)
    if leads and _is_plain(case):
        return parts.led_by(leads, outcome)
    return Decided(outcome, ZERO if outcome is Outcome.SMOOTHING else UNKNOWN)


def _is_plain(case: Layer) -> bool:
    """Whether each pair grows like (1 + h a)^L alone, of one head with one closed class."""
    if case.others or len(case.classes) > 1:
        return False
    modes = by_fractions.all_modes(case.rational_A, case.rational_H)
    return all(root.factor.jordan[0] == 1 for mode in modes for root in mode.roots)


def _acting(heads: exact.Heads, X: exact.Matrix) -> tuple[flint.fmpq_mat, ...]:
    """(A, H, X^T) of one head; several heads act on vec X as one H."""
    (A, H), *others = heads
    turned = exact.transposed(X)
    if others:
        H, A, turned = exact.on_vectors(A, H, X, others)
    return tuple(map(exact.to_flint, (A, H, turned)))


class _Parts:
    """What X_0 contains of the pairs of one layer."""

    def __init__(self, case: Layer, X0: exact.Matrix) -> None:
        heads = ((case.rational_A, case.rational_H), *case.others)
        self._case, self._modes = case, by_fractions.all_modes(*heads[0], case.others)
        self._a, self._h = (
            list(dict.fromkeys(roots))
            for roots in zip(*((m.attention, m.value) for m in self._modes), strict=True)
        )
        # Modes of consensus are those of its means; of heads that share none they are in all of it.
        means, total = fixed_means(heads), reduce(exact.plus, (H for _, H in heads))
        fixed = [(exact.identity(len(means)), total)] if means else heads
        alike = _acting(fixed, exact.product(means, X0) if means else X0)
        away = exact.plus(X0[:-1], [X0[-1]] * (len(X0) - 1), -1)
        self._sides = alike, _acting([(rational_quotient(A), H) for A, H in heads], away)
        self._A, self._H, self._start = map(exact.to_flint, (*heads[0], X0))
        self.in_balls, self._contains = cache(self._in_balls), cache(self._contains_class)

    def _in_balls(self, mode: Mode, bits: int) -> Any:
        """E_a X_0 E_h^T [n, d] of one head, where there are Jordan blocks up to what is regular."""
        with at_precision(bits):
            part = _projected(self._A, self._start, mode.attention, self._a, bits)
            return _projected(self._H, part.transpose(), mode.value, self._h, bits).transpose()

    def contains(self, mode: Mode) -> bool | None:
        """None where it is not shown."""
        factors = [root.factor for root in reversed(mode.roots)]
        if not self._contains(*factors):
            return False
        # Conjugates are there together; of irrational a and h not all pairs are conjugates.
        if sum(f.degree > 1 for f in factors) < 2:
            return True
        balls = (self.in_balls(mode, bits) for bits in doublings(_FIRST, _MOST))
        return any(not x.contains(0) for ball in balls for x in ball.entries()) or None

    def _contains_class(self, *own: Factor) -> bool:
        """Whether q_a(A) Z q_h(H)^T is not 0, for the factors (a, h), of consensus (h)."""
        A, H, Z = self._sides[len(own) - 1]
        whole, _ = Z.numer_denom()
        # What is not 0 modulo a prime is not 0.
        for start in (flint.nmod_mat(whole, resolvent.PRIMES[0]), whole):
            state = _without(H, self._h, own[-1], start)
            if len(own) > 1:
                state = _without(A, self._a, own[0], state.transpose())
            if any(state.entries()):
                return True
        return False

    def largest(self, consensus: bool) -> list[Mode] | None:
        """Those of the largest modulus of one side in X_0; None where that is not shown."""
        modes = [mode for mode in self._modes if (mode.attention is None) is consensus]
        while modes:
            top, sure, _ = by_fractions.largest_modes(modes, by_fractions.compare)
            there = [self.contains(mode) for mode in top]
            if None in there or not sure:
                return None
            if any(there):
                return [mode for mode, is_there in zip(top, there, strict=True) if is_there]
            modes = [mode for mode in modes if mode not in top]
        return []

    def led_by(self, leads: list[Mode], outcome: Outcome) -> Decided:
        """Limits and tokens where these pairs lead."""
        n, d = self._case.n, self._case.d
        balanced = all(sum(column) == 1 for column in zip(*self._case.rational_A, strict=True))
        open_ = infinite(None) if balanced and outcome is Outcome.NON_SMOOTHING else UNKNOWN
        with at_precision(_FIRST):
            mu = [mode.ball(_FIRST) for mode in leads]
            rate = float(abs(mu[0]).mid())
        growth = leading.TokenGrowth(rate, 0)
        if outcome is Outcome.SMOOTHING:
            # The parts of the mean by h are independent: it is never small.
            pairs = dict.fromkeys(combinations(range(n), 2), CosineLimit("constant", (1.0,)))
            return Decided(outcome, ZERO, tokens=token_limits((growth,) * n, {**pairs}, d))
        a = leads[0].attention
        pair = a is not None and leads[1:] == [leads[0].conjugate]
        turns = pair and not (a is not None and a.is_real and a.factor.multiplicity == 1)
        steady = (
            all(x.is_real for mode in leads for x in mode.roots)
            and len({bool(x.real > 0) for x in mu}) == 1
        )
        if not (pair or steady):
            return Decided(outcome, open_)
        for bits in doublings(_FIRST, _MOST):
            first = self.in_balls(leads[0], bits)
            parts = [first, first.conjugate()] if pair else [self.in_balls(m, bits) for m in leads]
            table = {mode: part.entries() for mode, part in zip(leads, parts, strict=True)}
            tends_to, limit = self._ratio(dict(zip(leads, parts, strict=True)), bits, not turns)
            narrow = limit is None or limit.high - limit.low <= limit.low / 2**60
            with at_precision(bits):
                accurate = all(norm(x).rel_accuracy_bits() >= 60 for x in table.values())
            if accurate and narrow:
                break
        bound = min(by_fractions.rank_bound(leads), n, d)
        rank = bound if leading.has_rank(table, d, bits, bound) else None
        limits = infinite(rank) if open_.tends_to else Limits(tends_to, limit, rank)
        if turns:
            return Decided(outcome, limits)
        # Of a pair the other half is the conjugate.
        with at_precision(bits):
            rows = sum(parts[:1] if pair else parts, flint.acb_mat(n, d)).tolist()
        cosines = {(i, j): _cosine(rows[i], rows[j]) for i, j in combinations(range(n), 2)}
        growths = tuple(growth if any(not x.contains(0) for x in row) else None for row in rows)
        return Decided(outcome, limits, tokens=token_limits(growths, cosines, d))

    def _ratio(
        self, parts: dict[Mode, flint.acb_mat], bits: int, settled: bool
    ) -> tuple[str | None, exact.Number | None]:
        """What HFC/LFC tends to where these parts lead."""
        n, hfc, mean = self._case.n, {}, {}
        with at_precision(bits):
            ones = flint.acb_mat(n, 1, [1] * n)
            for mode, part in parts.items():
                total = ones.transpose() * part
                mean[mode] = total.entries()
                hfc[mode] = (part * n - ones * total).entries()
        return leading.ratio_of(hfc, mean, n, bits, lambda _: settled)


def _projected(
    M: flint.fmpq_mat, state: Any, root: Eigenvalue | None, roots: list[Any], bits: int
) -> Any:
    """prod (M - y) / (x - y) state over the other roots y, each as often as the largest of its
    Jordan blocks has rows; None stands for 1."""
    balls = {x: flint.acb(1) if x is None else x.ball(bits) for x in roots}
    own, ball, state = balls.pop(root), flint.acb_mat(M), flint.acb_mat(state)
    for x, y in balls.items():
        for _ in range(1 if x is None else x.factor.jordan[0]):
            state = (ball * state - state * y) * (1 / (own - y))
    return state


def _without(M: flint.fmpq_mat, roots: list[Any], own: Factor, state: Any) -> Any:
    """prod f(M) state over the factors f of the minimal polynomial but `own`, times a power of the
    denominator of M; in integers, or modulo a prime."""
    integers, scale = M.numer_denom()
    is_whole = isinstance(state, flint.fmpz_mat)
    turned = integers if is_whole else flint.nmod_mat(integers, state.modulus())
    factors = dict.fromkeys(x.factor for x in roots if x and x.factor.text != own.text)
    for factor in (f for f in factors for _ in range(f.jordan[0])):
        first, *others = (c * scale**k for k, c in enumerate(reversed(factor.polynomial.coeffs())))
        state = reduce(lambda image, c: turned * image + state * c, others, state * first)
    return state


def _cosine(x: list[flint.acb], y: list[flint.acb]) -> CosineLimit | None:
    # Of a pair that leads with one real a, x and y are real multiples of one row.
    value = leading.cosine_of([[z.real for z in row] + [z.imag for z in row] for row in (x, y)])
    if value is None or not value.rad() < flint.arb(2) ** -60:
        return None
    return CosineLimit("constant", (leading.rounded(value),))
