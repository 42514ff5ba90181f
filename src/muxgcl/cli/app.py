"""The command line's entry: a mistake is one line on standard error, status 2, no traceback."""

import re
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from muxgcl import __version__
from muxgcl.errors import UserError
from muxgcl.io.safety import is_unicode
from muxgcl.kernels.ring import LostWorker
from muxgcl.runs.distributed import silent, speaks
from muxgcl.runs.fit import Stopped

# what the memory ran out for, the most telling first
LESS = {
    "report": "to draw the report: --no-report leaves it out",
    "evaluate": "to score the embedding: fewer --splits or a smaller width need less",
    "affinity": "for the affinities: --set affinity=none or a smaller affinity_width needs less",
    "io": "to read the graph: fewer nodes or columns need less",
    "graph": "to hold the graph: fewer nodes, edges or columns need less",
    "runs": "to train: a smaller width, or --backend chunked, needs less",
}
ORDER = (
    *("run", "train", "embed", "evaluate", "predict", "cluster", "neighbours", "links", "export"),
    *("report", "info", "tune", "reproduce"),
)
EXPECTED = {  # by the kind of a wrong value
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
}
DEBUG = "Show the traceback of an error."
# a usage error of the parser under Typer, which has moved between versions
UsageError: type[Exception] = next(
    kind
    for kind in typer.BadParameter.__mro__
    if kind.__name__ == "ClickException" and issubclass(kind, Exception)
)


class Ordered(TyperGroup):
    """Commands in the order in which a newcomer meets them; a signal ends them with a line."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; Typer would turn Ctrl-C into a bare status."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise Stopped("stopped", getattr(stop, "number", signal.SIGINT)) from None

    def list_commands(self, ctx: Any) -> list[str]:
        """The order of the help page."""
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


app = typer.Typer(
    name="muxgcl",
    cls=Ordered,
    help="Node embeddings of a graph, without labels, by contrastive learning (MUX-GCL).",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def _tell_version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"muxgcl {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_tell_version, is_eager=True),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help=f"{DEBUG[:-1]}; works with every command."),
    ] = False,
) -> None:
    pass


def run(arguments: list[str]) -> int:
    """Run one of the commands that were declared (`cli/commands.py`); its exit status."""
    debug = "--debug" in arguments
    if wrong := [word for word in arguments if not is_unicode(word)]:
        return _fail(f"{wrong[0]!r} is not UTF-8: rename what it names", 2, debug)
    command = typer.main.get_command(app)
    _readable_help(command)
    try:
        with _termination():
            status = command.main(
                [a for a in arguments if a != "--debug"], "muxgcl", standalone_mode=False
            )
    except typer.Exit as stop:
        return stop.exit_code
    except Stopped as stop:
        return _fail(str(stop), 128 + stop.number, debug)
    except LostWorker as error:
        return _fail(str(error), 2, debug, tells=speaks())
    except UserError as error:
        return _fail(str(error), 2, debug)
    except UsageError as error:
        return _fail(_usage(error), 2, debug)
    except (typer.Abort, KeyboardInterrupt) as stop:
        return _fail("stopped", 128 + getattr(stop, "number", signal.SIGINT), debug)
    except BrokenPipeError:
        return 1
    except OSError as error:  # a file that may not be read, a name that is too long, a full disk
        about = f"{error.filename}: " if error.filename else ""
        return _fail(f"{about}{error.strerror or error}", 2, debug)
    except RecursionError:
        return _fail("something is nested too deeply to be read", 2, debug)
    except (MemoryError, RuntimeError) as error:
        if not _out_of_memory(error):
            raise
        return _fail(f"there is not enough memory {_to_do(error)}", 2, debug)
    return status if isinstance(status, int) else 0


def _usage(error: Any) -> str:
    """The usage error: option, expected, got."""
    said = error.format_message().replace("Value error, ", "")
    context: Any = getattr(error, "ctx", None)
    if said.startswith("Missing command"):
        known = ", ".join(context.command.list_commands(context))
        return f"{context.command_path}: expected one of {known}"
    extra = re.search(r"unexpected extra argument\S* \((\S+\.\w+)\)$", said)  # one, a file
    if extra and any("--features" in option.opts for option in context.command.params):
        return f"{said}; did you mean --features {extra[1]}?"
    faults = error.__cause__.errors() if hasattr(error.__cause__, "errors") else []
    for fault in faults[:1]:  # as pydantic tells it
        bounds = fault.get("ctx", {})
        expected = EXPECTED.get(fault["type"], "").format(**bounds)
        if expected:
            return f"{error.param.opts[0]}: expected {expected}, got {fault['input']!r}"
    return str(said)


def _readable_help(command: Any, debug: Any = None) -> None:
    """Keep the help page from showing a type behind `--quiet`, as if a value were to follow.

    `--debug`, which only the program itself declares, is on the page of every command.
    """
    if debug is None:
        debug = copy(next(option for option in command.params if "--debug" in option.opts))
        debug.help, debug.expose_value = DEBUG, False
    elif debug not in command.params:
        command.params.append(debug)
    asks = command.get_help_option(command.context_class(command))
    for parameter in [*command.params, asks]:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    for inner in getattr(command, "commands", {}).values():
        _readable_help(inner, debug)


class Terminated(KeyboardInterrupt):
    """SIGTERM came."""

    number = signal.SIGTERM


@contextmanager
def _termination() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does."""

    def end(number: int, frame: FrameType | None) -> None:
        raise Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is end:  # else it is ignored: this command ends
            signal.signal(signal.SIGTERM, before)


def _out_of_memory(error: Exception) -> bool:
    message = str(error)  # torch has a kind of its own for GPUs alone
    words = ("out of memory", "not enough memory", "can't allocate memory")
    return isinstance(error, MemoryError) or any(word in message for word in words)


def _to_do(error: BaseException) -> str:
    """What was being done, and what would need less memory, by the modules in the traceback."""
    modules = []
    step = error.__traceback__
    while step is not None:
        modules.append(step.tb_frame.f_globals.get("__name__", ""))
        step = step.tb_next
    for package, words in LESS.items():
        if any(name.startswith(f"muxgcl.{package}") for name in modules):
            return words
    return "for this"


def _fail(message: str, status: int, debug: bool, *, tells: bool | None = None) -> int:
    """Print what is wrong; of several workers one does, by default the first."""
    tells = not silent() if tells is None else tells
    if debug:
        traceback.print_exc()
    if message and tells:  # there is none where the help page was the answer
        print(f"muxgcl: {' '.join(message.split())}", file=sys.stderr)
    return status
