"""The command line: the words choose a row of `ROWS`, whose module alone is then imported.

Exit status: 0 done, 1 a check failed or something is not installed, 2 bad input, 130 interrupted,
and those of `oversmoothing.commands.ending`.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextvars import copy_context
from importlib import import_module
from textwrap import fill
from types import MethodType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from oversmoothing.commands import COMMANDS, GONE, OLD, ROWS, Row, forms, options as opt
from oversmoothing.commands.ending import interrupted, say
from oversmoothing.theory.support.errors import InputError, unknown

_NAME = "oversmoothing"
# Terms that a page of help may use: it says what each means.
WORDS = {
    "HFC/LFC": "size of the differences between tokens, over that of their mean",
    "consensus": "all tokens equal",
}
_FRONT = """oversmoothing: do a Transformer's tokens become alike as depth grows?

  oversmoothing inspect gpt2 --text poems.txt    does my model smooth, and why?
  oversmoothing verdict --example GT4            does one layer, repeated?
  oversmoothing reproduce                        check and draw everything

{commands}

Options of many: --out DIR, --json, --plot, --seed N, --device NAME, --help
More: oversmoothing COMMAND --help
"""


class _Helped:
    def get_help_option(self, ctx: Any) -> Any:
        """--help, read as other options are."""
        option: Any = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.process_value = MethodType(_process, option)
        return option


class Command(_Helped, TyperCommand):
    """One command. An option that may be repeated also takes several words: `--depth 1 5 100`.

    Another has one value: given twice it is refused, for no value is dropped.
    """

    row: Row

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give the parser one word for each flag; what has one value has it once."""
        several = [param for param in self.params if getattr(param, "multiple", False)]
        words = repeat_flags(args, {flag for param in several for flag in param.opts})
        _, _, order = self.make_parser(ctx).parse_args(args=list(words))
        for param, count in Counter(order).items():
            once = param not in several and not getattr(param, "is_flag", False)
            if count > 1 and once and not ctx.resilient_parsing:
                ctx.fail(f"{param.opts[0]} is given {count} times and has one value: keep one")
        return super().parse_args(ctx, words)

    def invoke(self, ctx: Any) -> int:
        """Run it; the exit status."""
        given = (each for each in self.params if not each.is_eager
                 and ctx.get_parameter_source(each.name).name == "COMMANDLINE")  # fmt: skip
        opt.TYPED.set(frozenset(map(typed_as, given)))
        return int(super().invoke(ctx) or 0)

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        """The command with its operands, those that may be left out in brackets."""
        operands = [p for p in self.params if p.param_type_name == "argument"]
        rest = operands[len(self.row.operands.split()) :]
        may = [f"[{metavar(param)}]" for param in rest]
        formatter.write_usage(_NAME, " ".join([self.row.usage, *may, "[OPTIONS]"]))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Operands, options, and the other forms of the command."""
        lines: dict[str, list[tuple[str, str]]] = {"Operands": [], "Options": [], "Forms": []}
        param: Any
        for param in self.get_params(ctx):
            if not param.hidden:
                kind = "Operands" if param.param_type_name == "argument" else "Options"
                lines[kind].append(described(param))
        lines["Options"][-1] = ("--help", "show this page and stop")
        for word, row in forms(self.row.name).items():
            lines["Forms"].append((f"{word} {row.operands}" if word[0] == "-" else word,
                                   row.summary))  # fmt: skip
        used = " ".join(" ".join(row) for rows in lines.values() for row in rows)
        used += f" {self.help} {self.row.summary}"
        words = [(term, meaning) for term, meaning in WORDS.items() if term in used]
        for heading, rows in {**lines, "Words": words}.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)
        if lines["Forms"]:
            form = next(reversed(forms(self.row.name).values()))
            formatter.write(
                f"\n  Each form has its own options: oversmoothing {form.usage} --help\n"
            )

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The example on one line, to be copied."""
        formatter.write(f"\n  Example: oversmoothing {self.row.example}\n")


def typed_as(param: Any) -> str:
    """An option or an operand as it is typed."""
    return str(param.opts[0]) if param.param_type_name == "option" else metavar(param)


def metavar(param: Any) -> str:
    """What stands for the value of an option or an operand."""
    return str(param.metavar or param.name.upper()).strip("[]")


def described(param: Any) -> tuple[str, str]:
    """An option with its value, and what it means with its default."""
    flag, said = getattr(param, "is_flag", False), param.help or ""
    name = metavar(param)
    if param.param_type_name == "option":
        name = ", ".join(param.opts) + ("" if flag else f" {name}")
        usual = f"{param.default:g}" if isinstance(param.default, float) else param.default
        if not (flag or usual is None or "default" in said):
            said += f" (default {usual})"
    return name, said


class Commands(_Helped, TyperGroup):
    """All commands; a module is imported when its command is chosen."""

    row: Row | None = None  # that was chosen

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        rows = COMMANDS.items()
        self.commands = {name: TyperCommand(name, help=row.summary) for name, row in rows}

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Load the command that the words name."""
        command, words = chosen(args)
        self.row = command.row
        return command.name, command, words

    def invoke(self, ctx: Any) -> Any:
        """Run it, or say that it was interrupted, be it while its module was imported."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            return interrupted(ctx.invoked_subcommand or "", error)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The commands by group."""
        formatter.write(_FRONT.format(commands="\n".join(_listed())))


def _listed() -> Iterator[str]:
    group = ""
    for row in COMMANDS.values():
        if row.group != group:
            group = row.group
            yield group
        yield f"  {row.usage:17s} {row.summary}"
        kinds = ", ".join(word for word in forms(row.name) if not word.startswith("-"))
        if kinds:
            yield fill(kinds, 80, initial_indent=" " * 20, subsequent_indent=" " * 20)


def chosen(args: Sequence[str]) -> tuple[Any, list[str]]:
    """The command that the words name, loaded, and the words that it is given.

    A name or an option of the release before is answered, with the new one on stderr. Raises
    `InputError` for a name of no command, or of no form of one.
    """
    name, *words = args
    if name in GONE:
        raise InputError(f"'{name}' has left the installed program.\n{GONE[name]}")
    if name in OLD:
        row, words = _new(name, words)
    elif name in COMMANDS:
        row, words = _form(COMMANDS[name], words)
    else:
        todo = f"'oversmoothing --help' shows all {len(COMMANDS)}."
        raise unknown("command", name, COMMANDS, todo)
    command = load(row)
    return command, list(_renewed(command, words))


def _new(name: str, words: list[str]) -> tuple[Row, list[str]]:
    """The row that answers a command of the release before, which is said on stderr."""
    home, *other = OLD[name]
    for mark, row in [other] if other else []:
        of_case = mark == "CASE" and any(w == "-" or w.endswith(".json") for w in words)
        if of_case or any(word.partition("=")[0] == mark for word in words):
            home = row
            words = [word.removeprefix(f"{mark}=") for word in words if word != mark]
    new = next(row for row in ROWS if row.name == home)
    print(f"`{name}` is now `{new.usage}`", file=sys.stderr)
    return new, words


def _form(row: Row, words: list[str]) -> tuple[Row, list[str]]:
    """The form of the command that a flag chooses, or the second operand, which goes."""
    variants = forms(row.name)
    flags = [word for word in variants if word.startswith("-")]
    for flag in reversed(flags):
        if any(word.partition("=")[0] == flag for word in words):
            # A flag without a number stands for the usual one.
            after = [*words[1:], "-"]
            plain = [k for k, word in enumerate(words) if word == flag and after[k].startswith("-")]
            return variants[flag], [word for k, word in enumerate(words) if k not in plain]
    kinds = {word: form for word, form in variants.items() if word not in flags}
    # MODEL KIND, or between options: not the value of one.
    free = [k for k in range(len(words)) if not k or not words[k - 1].startswith("--")
            or (words[k] in kinds and _has_flag(kinds[words[k]], words[k - 1]))]  # fmt: skip
    for place in (1, *free) if 1 in free and 0 in free else free:
        if place < len(words) and words[place] in kinds:
            return kinds[words[place]], [*words[:place], *words[place + 1 :]]
    if not kinds or "--help" in words:
        return row, words
    todo = f"'oversmoothing {row.name} --help' shows all {len(kinds)}."
    if len(words) > 1 and not words[0].startswith("-") and not words[1].startswith("-"):
        raise unknown("kind", words[1], kinds, todo)
    raise InputError(f"which kind? Type oversmoothing {row.usage}.\n{todo}")


def _has_flag(row: Row, word: str) -> bool:
    """Whether the word is an option of that form which takes no value."""
    return any(word in param.opts and param.is_flag for param in load(row).params)


def _renewed(command: Any, words: list[str]) -> Iterator[str]:
    """The words with new options for old ones, but for an old one that is read as it was."""
    row, kept = command.row, {flag for param in command.params for flag in param.opts}
    for word in words:
        flag, equals, value = word.partition("=")
        new = row.old.get(flag)
        if new is not None:
            print(f"`{flag}` is now `{new or row.usage}`", file=sys.stderr)
        if new is None or flag in kept:
            yield word
        elif new or equals:
            yield f"{new}{equals if new else ''}{value}"


def load(row: Row) -> Any:
    """The command of a row, its module imported."""
    module, name = row.function.split(":")
    own = not module.startswith("experiments.")
    place = import_module(f"oversmoothing.{'commands.' * own}{module}")
    function = getattr(place, name)
    if not own:
        function = import_module("oversmoothing.commands.probe").of_experiment(row, function)
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(row.name, cls=Command)(function)
    command = _built(app)
    command.row = row
    return command


def _built(app: typer.Typer) -> Any:
    command: Any = typer.main.get_command(app)
    for param in command.params:
        param.process_value = MethodType(_process, param)
    return command


def _process(param: Any, ctx: Any, value: Any) -> Any:
    """What an option is given, read by typer; a word, a usual number and nothing stand as they are.

    typer reads through pydantic, which takes as long to load as a verdict to begin.
    """
    kind = param.type_descriptor
    word = kind.annotation is str and kind.parameter_info.parser is None and isinstance(value, str)
    usual = value is param.default and isinstance(value, int | float)
    if param.required or not (word or usual or value is None):
        return type(param).process_value(param, ctx, value)
    if value is None and (param.multiple or param.nargs == -1):
        value = ()
    return value if param.callback is None else param.callback(ctx, param, value)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] in ([], ["help"]):
        words = [*words[1:], "--help"]
    app = typer.Typer(cls=Commands, rich_markup_mode=None)
    app.callback()(_front)
    command = _built(app)
    try:
        # In a context of its own: what was typed, and that bars are shown, end with the command.
        run = copy_context().run
        return int(run(command.main, words, prog_name=_NAME, standalone_mode=False) or 0)
    except InputError as error:
        return _refused(command.row, str(error))
    except typer.TyperException as error:
        return _refused(command.row, _in_words(error, command.row))
    except OSError as error:
        if error.filename is None:
            raise
        # A path that the system takes for none: too long, a loop of links.
        path = str(error.filename)
        shown = path if len(path) <= 200 else f"{path[:200]}..."
        return _refused(command.row, f"cannot use '{shown}': {error.strerror or error}")


def _refused(row: Row | None, message: str) -> int:
    """Say what is wrong in a line, what to do in another; the exit status 2."""
    wrong, _, todo = message.partition("\n")
    say("", wrong if wrong.endswith((".", "?")) else f"{wrong}.")
    asked = _NAME if row is None else f"{_NAME} {row.asked}"
    todo = todo or f"'{asked} --help' says what it takes."
    print(f"{'':{len(_NAME) + 2}}{todo}", file=sys.stderr)
    return 2


def _in_words(error: typer.TyperException, row: Row | None) -> str:
    """An error of the parser, the option as it was typed."""
    param = getattr(error, "param", None)
    kind = type(error).__name__
    if kind == "NoSuchOption":
        if _is_number(str(getattr(error, "option_name", ""))):
            return (
                f"no option {error.option_name}"  # type: ignore[attr-defined]
                "\nNumbers that begin with a minus follow an equals sign: --eigenvalues=-0.9,-0.5"
            )
        near = getattr(error, "possibilities", None) or ()
        likely = f" Did you mean {' or '.join(sorted(near)[:3])}?" if near else ""
        return f"no option {error.option_name}.{likely}"  # type: ignore[attr-defined]
    if param is None:
        said = error.format_message()
        wanted = re.fullmatch(r"Option '(\S+)' requires an argument\.", said)
        if wanted:
            return f"{wanted[1]} needs a value"
        extra = re.fullmatch(r"Got unexpected extra argument\S* \((.*)\)\.?", said)
        if extra and row is not None and row.name == "simulate" and ".json" in extra[1]:
            return (
                f"'{extra[1]}' is too much: simulate draws random layers"
                "\nA case of your own: oversmoothing verdict CASE.json --depth 1 10 100; "
                "every layer: oversmoothing.evolve"
            )
        return f"'{extra[1]}' is too much" if extra else said
    name = typed_as(param)
    if kind != "MissingParameter":
        return f"{name} {error.message}"
    form = f": give {name} {param.metavar}" if name.startswith("--") and param.metavar else ""
    return f"{name} is missing{form}"


def repeat_flags(words: list[str], flags: set[str]) -> list[str]:
    """`--depth 1 5` as `--depth 1 --depth 5`, for the flags given, up to the next option."""
    repeated: list[str] = []
    flag = None
    fresh = False
    for word in words:
        option = word.startswith("-") and not _is_number(word)
        if option:
            flag = word if word in flags else None
        elif flag is not None and not fresh:
            repeated.append(flag)
        repeated.append(word)
        fresh = option
    return repeated


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


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
    """Do a Transformer's tokens become alike as depth grows?"""
