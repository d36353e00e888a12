"""Enclosures of a described model's inputs: proved, checked, written, and said in words."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from oversmoothing.experiments.enclosures import enclosing, statement
from oversmoothing.experiments.enclosures.network import Network, network_of
from oversmoothing.experiments.inspection.extract import batches, extract, prepared
from oversmoothing.experiments.models.model import Model
from oversmoothing.simulations.drawing.result import Result, Sentence, Table, measured, proved
from oversmoothing.theory.support.errors import InputError, RequirementError
from oversmoothing.theory.support.files import read_text, to_json, write_atomically
from oversmoothing.theory.support.sizes import Array

# Columns of the table of an input.
SHOWN = ("hfc_lfc", "cos_mean", "cos_min", "effective_rank")
BY = "interval arithmetic, checked by another route"


class Enclosure(Result):
    """A proof of one input or box; `body`: what its file claims, which a checker recomputes."""

    def __init__(
        self, body: dict[str, Any], model: Model, rows: list[dict[str, Any]],
        sentences: list[Sentence], digits: str,
    ) -> None:  # fmt: skip
        self.body = body
        title = f"{model.name}: {body['kind'].removeprefix('oversmoothing ')}"
        super().__init__(
            "enclosure", title, {"layers": Table(pd.DataFrame(rows), number=digits)}, sentences,
            {"model": model.name, "network": body["network"]},
        )  # fmt: skip

    def write(self, folder: Path, number: int) -> Path:
        """The file that claims it, in a folder."""
        return write_atomically(folder / f"enclosure-{number}.json", to_json(self.body))


def read_inputs(model: Model, inputs: Any) -> Iterator[tuple[Any, Array, list[Tensor]]]:
    """(batch of one, exact input, streams [n, d] in float64) of each input.

    The exact input is the pixels [c, s, s] where the embedding is a convolution of patches, tokens
    in front and positions; else the stream in front of the first layer as the model gives it.
    """
    network = network_of(model)
    for batch in batches(inputs, 1):
        read = prepared(model, batch)
        seen = streams_of(model, read)
        if len(seen[0]) > enclosing.MOST_TOKENS:
            raise InputError(
                f"an input has {len(seen[0])} tokens: at most {enclosing.MOST_TOKENS} here"
            )
        given = seen[0].numpy()
        if network.patches is not None:
            pixels = read if isinstance(read, Tensor) else read["pixel_values"]
            given = pixels[0].cpu().double().numpy()
            given = given[None] if given.ndim == 2 else given
        yield read, given, seen


def streams_of(model: Model, batch: Any) -> list[Tensor]:
    """The kept tokens' streams [n, d] of a batch of one, in front of layer 1 and behind each."""
    read = extract(model, batch, attention=False)
    keep = read.keep[0]
    return [read.traces[0].before[0][keep], *(trace.after_ffn[0][keep] for trace in read.traces)]


def prove_inputs(model: Model, single: Model | None, inputs: Any) -> Iterator[Enclosure]:
    """An enclosure of every layer for each input; single: the same model in float32, to compare.

    model is in float64. Raises `InputError` for a network that cannot be enclosed and
    `RequirementError` where the checker does not confirm what was found.
    """
    network = network_of(model)
    for batch, given, seen in read_inputs(model, inputs):
        start = clock()
        enclosure = enclosing.enclosed(network, given, [X.numpy() for X in seen])
        body, proved_in = statement.input_statement(network, given, enclosure), start()
        confirmed = _confirmed(network, body)
        balls = [ball for layer in enclosure.layers for ball in layer.values()]
        tiny = np.finfo(float).tiny
        widest = max(2 * float(x.rad()) / max(abs(float(x.mid())), tiny) for x in balls)
        of = "over all tokens" + " (the file has them without CLS too)" * network.cls
        first, last = (float(enclosure.layers[k]["hfc_lfc"].mid()) for k in (0, -1))
        sentences = [
            Sentence(
                "HFC/LFC (the size of the differences between tokens over that of their mean) goes "
                f"from {first:.6g} to {last:.6g} over {len(enclosure.layers) - 1} layers.",
                proved(BY),
            ),
            Sentence(
                f"Every number of the table is enclosed within {widest:.1e} of itself, {of}: "
                f"{enclosure.bits} bits, {proved_in}.",
                proved(BY),
            ),
        ]
        floats = {torch.float64: seen}
        floats |= {} if single is None else {torch.float32: streams_of(single, batch)}
        for dtype, streams in floats.items():
            error = enclosing.largest_error(enclosure.layers, streams)
            stated = enclosing.STATED[dtype]
            says = (
                f"The metrics of `inspect` in {str(dtype).split('.')[1]} are off by {error:.1e} at "
                f"most ({'within' if error <= stated else 'BEYOND'} the stated {stated:.0e})."
            )
            sentences.append(Sentence(says, measured(1)))
        rows = [
            {"layer": number} | {name: layer[name].str(10, radius=False) for name in SHOWN}
            | {"widest radius": max(float(x.rad()) for x in layer.values())}
            for number, layer in enumerate(enclosure.layers)
        ]  # fmt: skip
        yield Enclosure(body, model, rows, [*sentences, confirmed], "{:.1e}")


def prove_boxes(
    model: Model, inputs: Any, eps: float | None, layers: list[int]
) -> Iterator[Enclosure]:
    """Signs of the change of HFC/LFC on a box around each input: of eps, or for each layer (all
    where none is named) the largest that is proved. Raises as `prove_inputs` does."""
    network = network_of(model)
    for _, given, _ in read_inputs(model, inputs):
        start = clock()
        if eps is None:
            every = layers or range(1, len(network.blocks) + 1)
            largest = ((layer, enclosing.largest_box(network, given, layer)) for layer in every)
            boxes = [(size, {layer: ends}) for layer, (size, ends) in largest]
        elif claims := enclosing.on_box(network, given, eps, layers):
            boxes = [(eps, claims)]
        else:
            raise RequirementError(
                f"no sign is proved on the box of {eps:.6g}: give a smaller one, or leave --eps out"
            )
        many = "In all it" if len(boxes) > 1 else "It"
        proved_in = Sentence(f"{many} took {start()}.", proved(BY))
        for size, claims in boxes:
            body = statement.box_statement(network, given, size, claims)
            rows = [
                {"layer": number, "eps": size, "change_low": low, "change_high": high}
                for number, (low, high) in claims.items()
            ]
            falls = [str(number) for number, (_, high) in claims.items() if high < 0]
            rises = [str(number) for number, (low, _) in claims.items() if low > 0]
            both = (("falls", falls), ("rises", rises))
            ways = " and ".join(f"{way} over layer {', '.join(x)}" for way, x in both if x)
            says = f"For every image within {size:.3g} of this one in every pixel, HFC/LFC {ways}."
            sentences = [Sentence(says, proved(BY)), proved_in, _confirmed(network, body)]
            yield Enclosure(body, model, rows, sentences, "{:.6g}")


def check_file(model: Model, path: str) -> statement.Judgement:
    """What the checker finds of a file. Raises `InputError` for what is no enclosure."""
    return statement.check_statement(
        network_of(model), statement.read_statement(read_text(path), f"'{path}'")
    )


def clock() -> Callable[[], str]:
    """What says the seconds since now, and those that this process computed."""
    wall, own = time.perf_counter(), time.process_time()
    return lambda: f"{time.perf_counter() - wall:.0f} s ({time.process_time() - own:.0f} s of CPU)"


def _confirmed(network: Network, body: dict[str, Any]) -> Sentence:
    """What the checker says. Raises `RequirementError` where it does not confirm the file."""
    start = clock()
    checked = statement.check_statement(
        network, statement.read_statement(to_json(body), "the enclosure")
    )
    if not checked.accepted:
        raise RequirementError(
            f"the checker does not confirm what was enclosed ({checked.words}): nothing is written"
        )
    return Sentence(f"Checked in {start()}: {checked.words}.", proved(BY))
