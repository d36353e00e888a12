"""What `simulations` offers to the command line; torch and the solvers load when a command runs."""

from __future__ import annotations

from theory.command import Command, lazy_command

COMMANDS: list[Command] = [
    lazy_command(
        "simulate",
        "run one drawn case to any depth and hold it against the closed form",
        "simulations.simulate_command",
    ),
    lazy_command(
        "heads",
        "run many heads and changing layers beside what the theory says",
        "simulations.heads_command",
    ),
    lazy_command(
        "prove",
        "run the ledger of claims: proofs, counterexamples, searches, simulations",
        "simulations.prove",
    ),
    lazy_command(
        "sweep",
        "the outcome of every point of a grid of parameters, as a table",
        "simulations.sweep.command",
    ),
]
