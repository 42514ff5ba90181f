"""What a forked child of `tools/mutants.py` does: run tests of a copied tree, in this process."""

import ast
import gc
import json
import os
import sys
import threading
import time
from collections.abc import Generator, Iterator
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

OPTIONS = [
    *("-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"),
    *("-o", "addopts=--strict-markers -m 'not slow and not gpu'"),
    *("-W", "ignore:Module already imported"),  # by the parent, which loads libraries once
]


def enter(tree: Path) -> None:
    """Work in the tree, on its source, and write to the log beside it."""
    log = os.open(tree.parent / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(tree)
    sys.path[:0] = [str(tree / "src"), str(tree / "tests")]


def load_all_but(module: str, tree: Path) -> None:
    """Import what does not depend on a module of ours, as the tests do: with shapes checked."""
    import_module("conftest")
    imports: dict[str, set[str]] = {}
    for file in (tree / "src" / "muxgcl").rglob("*.py"):
        parts = file.relative_to(tree / "src").with_suffix("").parts
        package = ".".join(parts[:-1])
        uses = {".".join(parts[:i]) for i in range(2, len(parts))}  # its packages load first
        imports[".".join(parts).removesuffix(".__init__")] = uses
        uses.update(_imported(ast.parse(file.read_bytes())))
        if parts[-1] == "__init__" and b"import_module" in file.read_bytes():  # by their names
            uses.update(f"{package}.{other.stem}" for other in file.parent.glob("*.py"))
    imports["muxgcl"] = set()  # its names load when they are asked for
    name = "muxgcl." + module.removesuffix(".py").replace("/", ".")
    changed = {name}
    while more := {other for other, uses in imports.items() if uses & changed} - changed:
        changed |= more
    for other in sorted(imports.keys() - changed):
        if not other.startswith(("muxgcl.cli", "muxgcl.__main__")):
            import_module(other)
    assert name not in sys.modules, f"{name} is loaded before it is changed"
    gc.freeze()  # what is here stays: no collection looks at it again


def _imported(tree: ast.AST) -> Iterator[str]:
    """The modules of ours that a file names in its imports, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


class Chosen:
    """A plugin that keeps the chosen tests alone, in their order."""

    def __init__(self, tests: list[str]) -> None:
        self.order = {test: i for i, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Chosen tests are kept, fastest first."""
        items[:] = sorted(
            (item for item in items if item.nodeid in self.order),
            key=lambda item: self.order[item.nodeid],
        )

    def pytest_runtest_logreport(self, report: Any) -> None:
        """One failure is enough: nothing is taken down."""
        if report.failed:
            os._exit(1)


def run_tests(tests: list[str], seconds: float) -> int:
    """Pytest's exit code for these tests, each of which may take so long."""
    sys.dont_write_bytecode = True
    files = sorted({test.split("::")[0] for test in tests})
    limit = f"--timeout={seconds:.0f}"
    return int(pytest.main([*OPTIONS, limit, *files], plugins=[Chosen(tests)]))


class Measured:
    """A plugin that notes how long each test takes and which lines of the sources it reaches."""

    def __init__(self, sources: list[Path], tree: Path, never: list[str]) -> None:
        self.names = {str(s): str(s.relative_to(tree / "src" / "muxgcl")) for s in sources}
        self.never = never
        self.reached: dict[str, set[int]] = {}
        self.tests: dict[str, dict[str, Any]] = {}
        self.shared: dict[
            tuple[str, str], dict[str, set[int]]
        ] = {}  # by fixtures that several tests of a file share

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out what is too slow to run once a mutant."""
        items[:] = [item for item in items if item.originalname not in self.never]

    def trace(self, frame: FrameType, event: str, argument: object) -> Any:
        """Follow the frames of our sources, and no others."""
        name = self.names.get(frame.f_code.co_filename)
        if name is None:
            return None
        lines = self.reached.setdefault(name, set())

        def local(frame: FrameType, event: str, argument: object) -> Any:
            lines.add(frame.f_lineno)
            return local

        lines.add(frame.f_lineno)
        return local

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        """Note what a fixture reaches that several tests share: each of them depends on it."""
        if fixturedef.scope == "function":
            return (yield)
        before, self.reached = self.reached, {}
        try:
            return (yield)
        finally:
            self.shared[fixturedef.baseid, fixturedef.argname] = self.reached
            self.reached = before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Generator[None, Any, Any]:
        """Note a test's time and lines, those of its fixtures among them."""
        self.reached = {}
        began = time.perf_counter()
        threading.settrace(self.trace)  # the probe's splits run in threads
        sys.settrace(self.trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            seconds = time.perf_counter() - began
            found = [self.reached]
            found += [
                lines for (_, name), lines in self.shared.items() if name in item.fixturenames
            ]
            together: dict[str, set[int]] = {}
            for part in found:
                for name, lines in part.items():
                    together.setdefault(name, set()).update(lines)
            listed = {name: sorted(lines) for name, lines in together.items()}
            self.tests[item.nodeid] = {"seconds": round(seconds, 3), "lines": listed}


def measure(tree: Path, file: str, sources: list[Path], never: list[str], out: Path) -> int:
    """Run a test file; what each test takes and reaches goes to `out`."""
    enter(tree)
    plugin = Measured(sources, tree, never)
    code = int(pytest.main([*OPTIONS, f"tests/{file}"], plugins=[plugin]))
    if code == 0:
        out.write_text(json.dumps(plugin.tests))
    return code
