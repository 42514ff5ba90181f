"""The command line: parses arguments, calls `app`, `tune`, `bench` or `reproduce`, and prints.

Each module declares commands (`commands` lists them), `app` turns errors into one line. `main` is
the program `muxgcl`; nothing else calls this package.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from muxgcl import __version__

STOPPED = 128  # a status above it: a signal ended the command
FIRST_WORD = 0.8  # seconds without one
STOPS = (signal.SIGINT, signal.SIGTERM)


def main() -> None:
    """Run the command line and exit with its status.

    torch is loaded here, which takes seconds; a signal in that time is one line as well. Standard
    output is flushed here, so that a full disk is reported.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller (`>&-`)
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  (open to the end)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # an ASCII terminal shows \\xe9
    try:
        if sys.argv[1:] == ["--version"]:  # which needs nothing of what follows
            print(f"muxgcl {__version__}", flush=True)
            sys.exit(0)
        before = {number: signal.signal(number, _leave) for number in STOPS}
        with _told_after(FIRST_WORD):
            from muxgcl.cli import commands  # noqa: F401  (declares them, and loads torch)
            from muxgcl.cli.app import run

        for number, handler in before.items():
            signal.signal(number, handler)
        status = run(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("muxgcl: stopped", file=sys.stderr)
        status = 130
    except BrokenPipeError:
        _forget_output()
        status = 1
    except OSError as error:
        print(f"muxgcl: standard output: {error.strerror or error}", file=sys.stderr)
        _forget_output()
        status = 2
    if status > STOPPED:  # threads may be inside a library, which must not be torn down under them
        with suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


@contextmanager
def _told_after(seconds: float) -> Iterator[None]:
    """Show on a terminal that libraries are loaded, once that takes so long; then wipe it away."""
    if not sys.stderr.isatty():
        yield
        return
    shown = threading.Event()

    def tell() -> None:
        shown.set()
        print("loading PyTorch ...", end="", file=sys.stderr, flush=True)

    timer = threading.Timer(seconds, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if shown.is_set():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _leave(number: int, frame: FrameType | None) -> None:
    """End at once: an exception would have to pass through libraries that are half loaded."""
    os.write(2, b"muxgcl: stopped\n")
    os._exit(STOPPED + number)


def _forget_output() -> None:
    """Drop what is left: Python would try to write it once more, and print a traceback."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
