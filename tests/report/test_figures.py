"""Figures as drawn: on the page in the colours of its theme, and as files of their own."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from report_cases import NAMES, bare_record, hostile_record, long_record, run_record

from muxgcl.report import RunRecord, save_figures, training_figures
from muxgcl.report.figures import PLOTS
from muxgcl.report.palette import THEMED
from muxgcl.report.score_figures import STRONG
from muxgcl.report.style import inline_svg, short_names, styled


def drawn(name: str, record: RunRecord) -> str:
    plot = next(plot for plot in PLOTS if plot.name == name)
    with styled():
        return inline_svg(plot.draw(record), name, name)


@pytest.mark.parametrize("name", [plot.name for plot in PLOTS])
def test_figures_on_the_page_take_their_colours_from_its_theme(name: str) -> None:
    svg = drawn(name, run_record())
    assert "var(--" in svg
    assert not [colour for colour in THEMED.values() if colour in svg]


def test_confusion_shows_the_percentages_of_each_row() -> None:
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", drawn("confusion", run_record()))
    rows = [[90, 10, 0, 0], [0, 50, 50, 0], [0, 0, 100, 0], [25, 25, 25, 25]]
    assert [int(t) for t in texts if t.isdigit()] == [cell for row in rows for cell in row]


@pytest.mark.parametrize(
    ("names", "want"),
    [
        (["Theory", "Rules"], ["Theory", "Rules"]),
        (
            ["Department of Biology", "Department of History", "Department of Mathematics"],
            ["Biology", "History", "Mathematics"],
        ),
        (["a_long_word_x1", "a_long_word_x2"], ["x1", "x2"]),
        (
            ["Applied biology of the sea", "Applied biology of lakes", "Art"],
            ["Applie…e sea", "Applie…lakes", "Art"],
        ),
        (["Department", "Department of Biology"], ["Department", "Department …"]),
        (["same", "same"], ["same", "same"]),
    ],
)
def test_long_names_stay_apart(names: list[str], want: list[str]) -> None:
    found = short_names(names, 12)
    assert max(map(len, found)) <= 12
    assert found == want


def test_figures_of_a_confusion_matrix_stand_out_from_their_cells() -> None:
    for card, ink, main in (("#ffffff", "#1c2330", "#2f6fb3"), ("#171b23", "#e8eaf0", "#6aa9ec")):
        for part in (0, 0.3, 0.6, 0.74, 0.76, 1):
            text = card if part > STRONG else ink
            cell = 0.04 + 0.96 * part
            colour = (1 - cell) * np.array(to_rgb(card)) + cell * np.array(to_rgb(main))
            assert contrast(colour, np.array(to_rgb(text))) >= 3


def contrast(one: np.ndarray, two: np.ndarray) -> float:
    """As WCAG has it."""
    linear = [np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) for c in (one, two)]
    low, high = sorted(float(c @ [0.2126, 0.7152, 0.0722]) for c in linear)
    return (high + 0.05) / (low + 0.05)


def test_loss_has_a_curve_for_each_term_and_one_for_the_total() -> None:
    svg = drawn("loss", run_record())
    assert [name for name in ("scale 0", "scale 1", "total") if f">{name}</text>" in svg] == [
        "scale 0",
        "scale 1",
        "total",
    ]


def test_curves_that_coincide_are_told_apart() -> None:
    with styled():
        *curves, last = training_figures.loss(long_record()).axes[0].lines[1:]
    widths = [line.get_linewidth() for line in (*curves, last)]
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == 3
    assert [line.is_dashed() for line in (*curves, last)] == [False, True, True]


def test_a_dollar_in_a_name_is_a_dollar() -> None:
    names = ["$a$", *NAMES[1:]]
    assert ">$a$</text>" in drawn("confusion", run_record(label_names=names))


def test_static_figures_are_whole_files_and_the_same_every_time(tmp_path: Path) -> None:
    record = hostile_record()
    written = save_figures(record, tmp_path / "one")
    names = {path.stem for path in written}
    assert names == {plot.name for plot in PLOTS} | {"map-pca", "map-tsne"}
    for path in written:
        if path.suffix == ".svg":
            ElementTree.parse(path)
        else:
            assert path.read_bytes().startswith(b"\x89PNG")
    for path in save_figures(record, tmp_path / "two"):
        assert path.read_bytes() == (tmp_path / "one" / path.name).read_bytes()


def test_static_figures_of_a_bare_record_are_none(tmp_path: Path) -> None:
    assert save_figures(bare_record(), tmp_path) == []


def test_drawing_leaves_the_settings_of_matplotlib_alone(tmp_path: Path) -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    save_figures(bare_record(confusion=[[1]]), tmp_path)
    assert dict(mpl.rcParams) == before
