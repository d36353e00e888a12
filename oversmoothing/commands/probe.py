"""`oversmoothing probe MODEL KIND`: one experiment on a trained model."""

from typing import Annotated

from typer import Argument

from oversmoothing.commands import forms, options as opt


def probe(
    model: opt.Model,
    kind: Annotated[
        str,
        Argument(
            metavar="KIND",
            help="one of the forms below; each has options of its own",
            autocompletion=lambda: list(forms("probe")),
        ),
    ],
) -> None:
    """Run one experiment on a trained model.

    The inputs are images (--images, --count) or texts (--text); results go to --out.
    """
