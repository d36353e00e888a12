"""The states at any depth from eigenbases, in float64 on the CPU, batched (T1a, T4, T9).

Each distinct A and each distinct W of the batch is decomposed once.
"""

import numpy as np
import torch
from jaxtyping import Float64

from oversmoothing.simulations.engine.kept_states import Errors, States
from oversmoothing.simulations.engine.problem import Problem
from oversmoothing.theory.depth.closed_form import ClosedForm
from oversmoothing.theory.depth.residuals import FeatureModes, TokenModes
from oversmoothing.theory.support.sizes import Array


class Bases:
    """The eigenbases of a problem, formed when first asked for and kept."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._tokens: dict[tuple[int, ...], TokenModes] = {}
        self._features: dict[tuple[int, ...], FeatureModes] = {}
        weights = problem.W if problem.W is not None else problem.P
        assert weights is not None
        self._weights = weights

    def form(self, place: tuple[int, ...]) -> ClosedForm:
        """The closed form of one batch element. Raises `InputError` for an ill-conditioned one."""
        problem = self.problem
        at = problem.element(problem.A, 2, place)
        if at not in self._tokens:
            self._tokens[at] = TokenModes(problem.A[at], problem.pi[at], by_torch)
        if problem.W is not None:
            key = problem.element(problem.W, 2, place)
            if key not in self._features:
                self._features[key] = FeatureModes(
                    H=np.ascontiguousarray(problem.W[key].T), solver=by_torch
                )
        else:
            assert problem.P is not None and problem.Q is not None
            p, q = problem.element(problem.P, 2, place), problem.element(problem.Q, 2, place)
            key = (len(p), *p, *q)
            if key not in self._features:
                self._features[key] = FeatureModes(P=problem.P[p], Q=problem.Q[q], solver=by_torch)
        return ClosedForm(self._tokens[at], self._features[key], residual=problem.residual)


def closed_form_states(
    problem: Problem,
    depths: tuple[int, ...],
    device: torch.device,
    dtype: torch.dtype,
    bases: Bases,
) -> States:
    """The states at the depths; one eigendecomposition of A and one of W (or of a head's core).

    Raises `InputError` where these are too ill conditioned.
    """
    n, d = problem.n, problem.d
    states = np.empty((len(depths), problem.number, n, d))
    exponents = np.empty((len(depths), problem.number, 2), dtype=np.int64)
    parts = np.zeros((len(depths), problem.number, 2))
    hfc, hfc_exponent, c, c_exponent = problem.start
    lost = problem.lost_in_c
    for index, place in enumerate(np.ndindex(*problem.batch)):
        form = bases.form(place)
        x, k = problem.element(hfc, 2, place), problem.element(c, 1, place)
        for row, found in enumerate(form.states(hfc[x], c[k], depths, out=states[:, index])):
            found.hfc[:-1] -= found.hfc[-1]
            found.hfc[-1] = found.c
            exponents[row, index, 0] = found.hfc_exponent + hfc_exponent[x]
            exponents[row, index, 1] = found.c_exponent + c_exponent[k]
            # A c that came out as 0 and may be anything has an infinite error, also of 0 steps.
            unknown = np.isinf(lost[k])
            parts[row, index] = found.hfc_error, np.inf if unknown else found.c_error * lost[k]
    rounding = 0.0 if dtype == torch.float64 else torch.finfo(dtype).eps
    errors = Errors(torch.as_tensor(parts + rounding))
    return States(
        torch.as_tensor(states).to(device, dtype),
        torch.as_tensor(exponents).to(device),
        lambda: errors,
    )


def by_torch(
    M: Float64[Array, "m m"],
) -> tuple[
    Float64[Array, " m"], Float64[Array, " m"], Float64[Array, "m m"], Float64[Array, "m m"]
]:
    """As `theory.spectra.eigenbasis.by_lapack`, by the LAPACK that torch brings (MKL is faster)."""
    values, complex_vectors = torch.linalg.eig(torch.from_numpy(np.ascontiguousarray(M)))
    vectors = complex_vectors.numpy()
    real, imag = values.real.numpy(), values.imag.numpy()
    packed = vectors.real.copy(order="F")
    pair = np.flatnonzero(imag > 0)
    packed[:, pair + 1] = vectors.imag[:, pair]
    inverse, info = torch.linalg.inv_ex(torch.from_numpy(packed))
    if info != 0:
        inverse = torch.full_like(inverse, float("inf"))
    return real, imag, packed, inverse.numpy()
