"""The command line: one word chooses a command, whose module alone is then imported.

Exit status: 0 done, 1 a check failed or something is not installed, 2 bad input, 130 interrupted,
and those of `oversmoothing.commands.ending`.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from oversmoothing.commands import EXAMPLES, GONE, SUMMARIES
from oversmoothing.commands.ending import interrupted, say
from oversmoothing.theory.support.errors import InputError, RequirementError, explained

_NAME = "oversmoothing"


class Command(TyperCommand):
    """One command. An option that may be repeated also takes several words: `--depth 1 5 100`.

    Another has one value: given twice it is refused, for no value is dropped.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give the parser one word for each flag; what has one value has it once."""
        several = {
            flag
            for param in self.params
            if getattr(param, "multiple", False)
            for flag in param.opts
        }
        words = repeat_flags(args, several)
        _, _, order = self.make_parser(ctx).parse_args(args=list(words))
        for param, count in Counter(order).items():
            once = not getattr(param, "multiple", False) and not getattr(param, "is_flag", False)
            if count > 1 and once and not ctx.resilient_parsing:
                ctx.fail(f"{param.opts[0]} is given {count} times and has one value: keep one")
        return super().parse_args(ctx, words)

    def invoke(self, ctx: Any) -> int:
        """Run it; what a user can mend is said in one sentence on stderr."""
        try:
            status = super().invoke(ctx)
        except (InputError, RequirementError) as error:
            say(ctx.info_name, error)
            return 2 if isinstance(error, InputError) else 1
        except OSError as error:
            if error.filename is None:
                raise
            # A path that the system takes for none: too long, a loop of links.
            path = str(error.filename)
            shown = path if len(path) <= 200 else f"{path[:200]}..."
            say(ctx.info_name, f"cannot use '{shown}': {error.strerror or error}")
            return 2
        return int(status or 0)


class _Unloaded(TyperCommand):
    """A command in the list of all: its name and its whole summary."""

    def get_short_help_str(self, limit: int = 45) -> str:
        return str(self.help)


class Commands(TyperGroup):
    """All commands by name and summary; a module is imported when its command is chosen."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {
            name: _Unloaded(name, help=f"{summary[0].upper()}{summary[1:]}.")
            for name, summary in SUMMARIES.items()
        }

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Load the command that the first word names."""
        if args and args[0] in GONE:
            ctx.fail(f"{args[0]} has left the installed program: {GONE[args[0]]}")
        name, found, rest = super().resolve_command(ctx, args)
        return name, None if found is None else load(str(found.name)), rest

    def invoke(self, ctx: Any) -> Any:
        """Run it, or say that it was interrupted, be it while its module was imported."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            return interrupted(ctx.invoked_subcommand or "", error)


def load(name: str) -> Any:
    """The command of that name, its module imported."""
    function = name.replace("-", "_")
    app = _app()
    app.command(name, cls=Command, epilog=f"Example: {EXAMPLES[name]}")(
        getattr(import_module(f"oversmoothing.commands.{function}"), function)
    )
    return typer.main.get_command(app)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    app = _app(cls=Commands, add_completion=True)
    app.callback()(_front)
    try:
        words = None if argv is None else list(argv)
        return int(
            typer.main.get_command(app).main(words, prog_name=_NAME, standalone_mode=False) or 0
        )
    except ModuleNotFoundError as error:
        reason = explained(error)
        if reason is error:
            raise
        say("", reason)
        return 1
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        path = _NAME if context is None else context.command_path
        say(
            path.removeprefix(_NAME).strip(),
            f"{error.format_message().rstrip('.')} (see {path} --help)",
        )
        return 2


def repeat_flags(words: list[str], flags: set[str]) -> list[str]:
    """`--depth 1 5` as `--depth 1 --depth 5`, for the flags given, up to the next option."""
    found: list[str] = []
    flag = None
    fresh = False
    for word in words:
        if word.startswith("-") and not _is_number(word):
            flag, fresh = (word if word in flags else None), True
        elif flag is not None and not fresh:
            found.append(flag)
            fresh = False
        else:
            fresh = False
        found.append(word)
    return found


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _app(**settings: Any) -> typer.Typer:
    # Panels for a reader, plain text for a pipe.
    mode: Any = "rich" if sys.stdout.isatty() else None
    return typer.Typer(**{"add_completion": False, "rich_markup_mode": mode, **settings})


def _version(asked: bool) -> None:
    if asked:
        from oversmoothing import __version__

        print(f"{_NAME} {__version__}")
        raise typer.Exit


def _front(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Do a Transformer's tokens become alike as depth grows?

    It depends on the spectrum: ask of a case, a simulation or a trained model.
    """
