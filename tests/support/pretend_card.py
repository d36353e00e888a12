"""A card that is none: its tensors hold numbers of the CPU, say that they lie elsewhere (`meta`),
refuse what lies on the CPU as a card does, and tell which operations the host would wait for."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from oversmoothing.experiments.models import describe, tape

PACKAGE = Path(describe.__file__).parents[2]
CARD = torch.device("meta")
READS = {
    "_local_scalar_dense", "_unique2", "equal", "is_nonzero", "masked_select", "nonzero",
    "repeat_interleave", "unique_dim",
}  # fmt: skip
INDEXED = {"index", "index_put", "index_put_", "_index_put_impl_"}
# These ask no status of the card; every other `linalg_` does.
UNASKED = ("linalg_vector_norm", "linalg_qr", "linalg_lu_solve")


class OnCard(Tensor):
    """A tensor of the card."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> OnCard:
        layout = {"strides": held.stride(), "storage_offset": held.storage_offset()}
        made: OnCard = Tensor._make_wrapper_subclass(
            cls, held.shape, dtype=held.dtype, device=CARD, **layout
        )
        made.held = held
        return made

    def __repr__(self, **_: Any) -> str:
        return f"OnCard({self.held})"

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def numpy(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("can't convert a tensor of the card to numpy: copy it first")

    __array__ = numpy  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError(f"{func} on a card that is not there")


def _plain(x: Any) -> Any:
    return x.held if isinstance(x, OnCard) else x


def _place() -> tuple[str, int, str]:
    """(file, line, function) of the package, but for what watches a pass; else of nothing."""
    frame = sys._getframe(2)
    while frame.f_back is not None:
        path, function = Path(frame.f_code.co_filename), frame.f_code.co_name
        passed = path.name == "tape.py" or function == "__torch_dispatch__" or function[0] == "<"
        if path.is_relative_to(PACKAGE) and not passed:
            return path.name, frame.f_lineno, function
        frame = frame.f_back
    return "", 0, ""


class Card(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """waits: how often the host would have waited, by operation and place."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.waits: Counter[tuple[str, tuple[str, int, str]]] = Counter()

    def functions(self) -> Counter[tuple[str, str, str]]:
        """`waits` by operation, file and function."""
        numbers: Counter[tuple[str, str, str]] = Counter()
        for (operation, (file, _, function)), number in self.waits.items():
            numbers[operation, file, function] += number
        return numbers

    def _asked(self, name: str, args: Any, kwargs: Any, onto: bool) -> str:
        """What the host waits for in an operation; '' for nothing. Refuses mixed devices."""
        tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        there = [isinstance(t, OnCard) for t in tensors]
        if name in ("_to_copy", "copy_"):
            start, end = (there[0], onto) if name == "_to_copy" else (there[1], there[0])
            early = kwargs.get("non_blocking") or (name == "copy_" and args[2:] == (True,))
            return "" if early or start == end else "to the host" if start else "to the card"
        if not any(there):
            return ""
        if name in INDEXED:
            which = [i for i in args[1] if i is not None]
            if any(i.dtype == torch.bool for i in which):
                return "mask"
            return "" if all(isinstance(i, OnCard) or not i.ndim for i in which) else "index"
        if any(t.ndim and not isinstance(t, OnCard) for t in tensors):
            raise RuntimeError(f"{name} of the card and of the CPU, {_place()}")
        asks = name.lstrip("_").startswith("linalg_") and not name.endswith("_ex")
        return name if name in READS or (asks and name not in UNASKED) else ""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, device = kwargs or {}, (kwargs or {}).get("device")
        onto = any(isinstance(t, OnCard) for t in tree_leaves((args, kwargs)))
        onto = onto if device is None else torch.device(device) == CARD
        if asked := self._asked(func.overloadpacket.__name__, args, kwargs, onto):
            self.waits[asked, _place()] += 1
        given = kwargs if device is None else kwargs | {"device": "cpu"}
        out = func(*tree_map(_plain, args), **tree_map(_plain, given))
        if func._schema.is_mutable:
            return kwargs.get("out", args[0] if args else None)
        return tree_map(lambda x: OnCard(x) if onto and isinstance(x, Tensor) else x, out)


def moved(module: nn.Module) -> nn.Module:
    """The module with its weights on the card, within `pretend_card`."""
    module.requires_grad_(False)._apply(OnCard)
    return module


@contextmanager
def pretend_card() -> Iterator[Card]:
    """There is one: `moved` modules and `OnCard` inputs run on it."""
    stored, tensor = tape._stored, torch.tensor

    def made(data: Any, *args: Any, device: Any = None, **how: Any) -> Tensor:
        there = device is not None and torch.device(device) == CARD
        each = tensor(data, *args, device="cpu" if there else device, **how)
        return each.to(CARD) if there else each

    with (
        mock.patch.object(torch, "tensor", made),
        mock.patch.object(describe, "check_finite", lambda _: None),
        mock.patch.object(tape, "_stored", lambda t: stored(_plain(t))),
        Card() as card,
    ):
        yield card
