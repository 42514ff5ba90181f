"""The names a user types are there, and typing them costs no more than it must."""

import re
import subprocess
import sys
from pathlib import Path

import muxgcl


def test_no_public_name_hides_a_package() -> None:
    rooms = {path.parent.name for path in Path(muxgcl.__file__).parent.glob("*/__init__.py")}
    assert not rooms & set(muxgcl.__all__)
    assert callable(muxgcl.load)


def test_every_promised_name_is_there() -> None:
    assert [name for name in muxgcl.__all__ if not hasattr(muxgcl, name)] == []


def test_help_and_completion_know_every_name_before_it_is_loaded() -> None:
    known = "sorted(muxgcl.__all__) == dir(muxgcl)"
    code = f"import sys, muxgcl; print({known}, 'torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["True", "False"]


def test_every_public_name_is_in_the_api_pages_and_has_an_example() -> None:
    page = (Path(__file__).parents[1] / "docs" / "api.md").read_text("utf-8")
    shown = dict(re.findall(r"^::: (muxgcl\.\S+\.(\w+))$", page, re.M))
    documented = {name: path for path, name in shown.items()}
    plain = {"METHODS", "UserError", "__version__"}  # a dictionary, an exception, a text
    for name in set(muxgcl.__all__) - plain:
        assert name in documented, name
        home = getattr(muxgcl, name)
        assert documented[name] == f"{home.__module__}.{name}", name
        assert name == "Result" or ">>>" in (home.__doc__ or ""), name
    assert all(name in page for name in plain - {"__version__"})


def test_importing_the_package_loads_neither_command_line_nor_plotting() -> None:
    heavy = "{'typer', 'rich', 'matplotlib', 'optuna'}"
    code = f"import sys, muxgcl; print(sorted({heavy} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_command_line_trains_and_scores_without_torchs_compiler(tmp_path: Path) -> None:
    code = (
        "import sys; from muxgcl.cli import main;"
        f"sys.argv = ['muxgcl', 'run', 'cora', '--method', 'dgi', '--preset', 'quick', '--epochs',"
        f" '1', '--splits', '2', '--no-report', '--quiet', '--out', {str(tmp_path / 'run')!r}]\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'torch._dynamo', 'matplotlib', 'optuna'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "[]", found.stdout
    assert (tmp_path / "run" / "scores.json").is_file()


def test_every_pin_but_torchs_has_a_hash() -> None:
    root = Path(__file__).parents[1]
    lines = (root / "constraints.txt").read_text().splitlines()[1:]
    pins = {line for line in lines if not line.startswith("torch==")}
    hashed = [
        re.fullmatch(
            r"(\S+==\S+?)( ; platform_system == 'Linux')? --hash=sha256:[0-9a-f]{64}", line
        )
        for line in (root / "constraints-hashed.txt").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert all(hashed)
    assert {_plain(line[1]) for line in hashed if line} == {_plain(pin) for pin in pins}


def _plain(pin: str) -> str:
    """As an index spells it: Jinja2 and jinja2 are one."""
    name, _, version = pin.partition("==")
    return f"{re.sub('[-_.]+', '-', name).lower()}=={version}"
