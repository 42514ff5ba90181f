"""Pages as files: complete, closed to the network, and safe to open."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_cases import bare_record, figure, hostile_record, run_record

from muxgcl.errors import UserError
from muxgcl.report import RunRecord, compare, write_report
from muxgcl.report import node_map as nodes
from muxgcl.report import project as layout
from muxgcl.report.comparison import distinct_names, folder_names
from muxgcl.report.figures import PLOTS
from muxgcl.report.markup import pairs

# drawing takes most of the time: records without figures, where figures are not what is tested
UNDRAWN = dict.fromkeys(("metrics", "scores", "similarities", "affinity_weights", "confusion"))


@pytest.fixture(autouse=True)
def _flat_maps(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Maps at no cost: how nodes are laid out is tested elsewhere."""

    def two_maps(rows: np.ndarray) -> list[layout.Map]:
        places = np.random.default_rng(0).random((len(rows), 2), np.float32)
        return [layout.Map("PCA", "the flat one", places), layout.Map("t-SNE", "groups", places)]

    monkeypatch.setattr(nodes, "maps", two_maps)
    yield
    nodes.shown.cache_clear()


class Page(HTMLParser):
    """The elements of a page, its text, and the text of each section."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.sections: dict[str, str] = {}
        self.inside = ""  # the section
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "section":
            self.inside = str(dict(attrs)["id"])
            self.sections[self.inside] = ""

    def handle_endtag(self, tag: str) -> None:
        self.inside = "" if tag == "section" else self.inside

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self.inside:
            self.sections[self.inside] += f"{data} "

    def names(self) -> list[str]:
        return [tag for tag, _ in self.elements]


@pytest.fixture
def page(tmp_path: Path) -> Page:
    write_report(run_record(), tmp_path / "report.html")
    return Page(tmp_path / "report.html")


def test_a_full_record_has_every_section_and_nothing_is_said_to_be_missing(page: Page) -> None:
    plots = {plot.name for plot in PLOTS}
    assert set(page.sections) == plots | {"embedding", "data", "time", "settings"}


def test_the_figures_asked_for_are_on_the_page(page: Page) -> None:
    assert "84.25 ± 0.50" in page.sections["scores"]
    assert "raw features" in page.sections["scores"]
    assert "made undirected: 3 -> 6 entries" in page.sections["data"]
    assert "412 MiB" in page.sections["time"]
    assert "muxgcl run blobs --seed 0" in page.sections["time"]
    assert "0.2, 0.4" in page.sections["settings"]


def test_each_figure_is_drawn_and_says_how_to_read_it(page: Page) -> None:
    assert page.names().count("svg") == len(PLOTS)
    for plot in PLOTS:
        assert plot.reading in page.sections[plot.name]


def test_no_id_is_used_twice_and_every_link_leads_somewhere(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [
        attributes.get("href") or attributes.get("xlink:href") for _, attributes in page.elements
    ]
    assert {link for link in links if link} <= {f"#{name}" for name in ids}


def test_nothing_is_asked_of_the_network(page: Page) -> None:
    assert not {"link", "img", "iframe", "object", "embed", "video", "audio"} & set(page.names())
    assert not [attributes for _, attributes in page.elements if "src" in attributes]
    policy = next(a["content"] for t, a in page.elements if "http-equiv" in a)
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    style = Path(layout.__file__).with_name("page.css").read_text()
    assert "url(" not in style
    assert "@import" not in style


def test_an_optimistic_protocol_is_marked_wherever_it_is_shown(tmp_path: Path) -> None:
    paper = {"accuracy": figure(86.0, n=3), "optimistic": True, "unselected": figure(84.9)}
    for protocol, marks in (({"paper": paper}, 3), ({"holdout": {"accuracy": figure(84.2)}}, 0)):
        write_report(bare_record(scores=protocol), tmp_path / "report.html")
        page = Page(tmp_path / "report.html")
        assert "".join(page.texts).count("optimistic") == marks  # tile, figure, table


def test_what_is_missing_is_left_out_with_the_reason(tmp_path: Path) -> None:
    write_report(bare_record(), tmp_path / "report.html")
    page = Page(tmp_path / "report.html")
    assert set(page.sections) == {"data", "time", "settings", "left-out"}
    for reason in ("no embeddings yet", "no metrics.jsonl", "not evaluated", "has no scales"):
        assert reason in page.sections["left-out"]


@pytest.mark.parametrize("part", ["labels", "ids", "edge_index", "columns", "seconds", "command"])
def test_any_part_may_be_missing(part: str, tmp_path: Path) -> None:
    write_report(run_record(**UNDRAWN, **{part: None}), tmp_path / "report.html")
    assert "embedding" in Page(tmp_path / "report.html").sections


@pytest.mark.parametrize(
    "record",
    [
        run_record(1, labels=np.array([0]), **UNDRAWN),
        run_record(2, **UNDRAWN),
        run_record(30, embedding=np.zeros((30, 4), np.float32), **UNDRAWN),
        run_record(30, labels=np.full(30, -1), **UNDRAWN),
        bare_record(metrics=[{"epoch": 1, "loss": float("nan"), "terms": {}, "ms": 1.0}]),
        bare_record(confusion=np.eye(60, dtype=int).tolist()),
        bare_record(scores={"holdout": {"accuracy": figure(0.0, 0.0, 1)}}),
        bare_record(affinity_weights={"scale 0": {"counts": [0, 0], "edges": [0, 0.5, 1]}}),
    ],
    ids=["one", "two", "zero", "unlabelled", "nan", "60 classes", "no spread", "no counts"],
)
def test_odd_records_make_pages(record: RunRecord, tmp_path: Path) -> None:
    write_report(record, tmp_path / "report.html")
    assert "settings" in Page(tmp_path / "report.html").sections


def test_code_in_a_sentence_is_markup_and_a_name_in_it_is_not(tmp_path: Path) -> None:
    notes = ["column `a<b` is not used"]
    write_report(bare_record(data_notes=notes), tmp_path / "report.html")
    assert "<li>column <code>a&lt;b</code> is not used</li>" in (
        tmp_path / "report.html"
    ).read_text(encoding="utf-8")


def test_edges_are_counted_once(tmp_path: Path) -> None:
    counts = {"nodes": 300, "edges": 1_778, "features": 1}
    write_report(bare_record(data_summary=counts), tmp_path / "report.html")
    texts = Page(tmp_path / "report.html").texts
    assert {"889 edges", "1 feature"} <= {text.strip() for text in texts}


def test_without_controls_the_page_does_not_speak_of_them(tmp_path: Path) -> None:
    for scores, told in (({}, False), ({"controls": {"raw": {"accuracy": figure(1.0)}}}, True)):
        scores = {"holdout": {"accuracy": figure(84.2)}, **scores}
        write_report(bare_record(scores=scores), tmp_path / "report.html")
        page = Page(tmp_path / "report.html")
        assert ("control" in "".join(page.texts)) == told


def test_only_a_very_long_word_may_be_broken() -> None:
    page = pairs({"commit": "b23ac2df39ae-dirty", "graph": "/a/long/path" * 9})
    assert page.count('class="wrap"') == 1
    assert "<td>b23ac2df39ae-dirty</td>" in page


def test_no_name_becomes_markup(tmp_path: Path) -> None:
    record = hostile_record()
    write_report(record, tmp_path / "report.html")
    compare([record, record], tmp_path / "compare.html")
    for name, scripts in (("report.html", 2), ("compare.html", 2)):
        page = Page(tmp_path / name)
        assert "img" not in page.names()
        assert page.names().count("script") == scripts
        assert not [a for _, a in page.elements for key in a if key.startswith("on")]
        assert any('<img src=x onerror="hacked=1">' in text for text in page.texts)  # as text


def test_the_payload_is_the_json_that_was_put_in(tmp_path: Path) -> None:
    record = hostile_record()
    write_report(record, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    sent = re.search(r'<script type="application/json" id="payload">(.*?)</script>', text)
    assert sent is not None
    assert json.loads(sent[1])["ids"] == record.ids.tolist()


@pytest.mark.parametrize(("n", "d", "most"), [(2_708, 256, 2_000_000), (20_000, 256, 10_000_000)])
def test_the_file_stays_small(n: int, d: int, most: int, tmp_path: Path) -> None:
    text = np.array([f"a long name of a node that stands for many more {k}" for k in range(n)])
    columns = {f"text {k}": text for k in range(8)} if n > 3_000 else {}
    write_report(run_record(n, d, columns=columns, **UNDRAWN), tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < most


def test_a_report_replaces_the_old_one_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    write_report(bare_record(), path)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    assert "<title>bare</title>" in path.read_text()


def test_a_page_is_called_by_its_folder(tmp_path: Path) -> None:
    write_report(run_record(folder="monday"), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "<title>monday</title>" in page
    assert "<h1>monday</h1>" in page
    assert "mux-gcl on blobs. Each node" in page


# comparison ------------------------------------------------------------------------------------


def test_a_comparison_tells_the_size_of_a_sample_from_the_scales_that_are_anchors(
    tmp_path: Path,
) -> None:
    records = [
        bare_record(settings={"run": {"anchors": size}, "method": {"anchors": "all"}})
        for size in (512, 1024)
    ]
    compare(records, tmp_path / "both.html")
    differ = Page(tmp_path / "both.html").sections["differences"]
    assert "anchors of a step" in differ
    assert "512" in differ
    assert "1024" in differ


def test_a_comparison_shows_all_runs_and_only_what_differs(tmp_path: Path) -> None:
    other = run_record(
        seed=1,
        title="grace on blobs",
        method="grace",
        scores={"holdout": {"accuracy": figure(83.5)}},
    )
    compare([run_record(), other], tmp_path / "compare.html")
    page = Page(tmp_path / "compare.html")
    assert set(page.sections) == {"scores", "maps", "losses", "differences"}
    for text in ("84.25 ± 0.50", "83.50 ± 0.50", "blobs: raw features"):
        assert text in page.sections["scores"]
    assert "seed" in page.sections["differences"]
    assert "width" not in page.sections["differences"]
    assert page.names().count("canvas") == 2


def test_bare_runs_can_be_compared(tmp_path: Path) -> None:
    compare([bare_record(), bare_record(method="other")], tmp_path / "compare.html")
    sections = Page(tmp_path / "compare.html").sections
    assert set(sections) == {"differences", "left-out"}


@pytest.mark.parametrize("records", [[], [bare_record()]])
def test_a_comparison_needs_two_runs(records: list[RunRecord], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"at least two runs to compare, got {len(records)}"):
        compare(records, tmp_path / "compare.html")


def test_runs_are_named_by_their_folders_and_told_apart() -> None:
    def run(seed: int | None, title: str = "a", folder: str = "") -> RunRecord:
        settings: dict[str, Any] = {} if seed is None else {"run": {"seed": seed}}
        return bare_record(title=title, settings=settings, folder=folder)

    runs = [run(0), run(1, "a", "x"), run(1, "a", "y"), run(None), run(0, "b"), run(0)]
    runs.append(run(2, "b", "x"))
    assert distinct_names(runs) == [
        "a, seed 0",
        "x, a",
        "y",
        "a",
        "b",
        "a, seed 0 (2)",
        "x, b",
    ]


def test_names_of_folders_are_distinct_and_good_on_any_disk() -> None:
    titles = ["a: b/c", "a b c", "A-b-c", "../..", "é" * 300, "é" * 300]
    names = folder_names([bare_record(title=title) for title in titles])
    assert names == ["a-b-c", "a-b-c-2", "A-b-c-3", "run", "é" * 60, "é" * 60 + "-2"]


def per_split(*values: float) -> dict[str, Any]:
    return {
        "accuracy": figure(sum(values) / len(values), n=len(values)),
        "per_split": {"accuracy": list(values), "split_seed": 0},
    }


def test_a_page_says_whether_training_paid(tmp_path: Path) -> None:
    scores = {
        "holdout": per_split(80.0, 82.0),
        "controls": {"raw": {"holdout": per_split(70.0, 71.0)}},
    }
    write_report(run_record(40, scores=scores), tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Training paid: mux-gcl is 10.50 points of accuracy above the best control" in page
    assert "accuracy (%), n = 2" in page
    write_report(run_record(40), tmp_path / "page.html")
    assert "Training paid" not in (tmp_path / "page.html").read_text()


def test_a_comparison_pairs_runs_with_the_same_splits(tmp_path: Path) -> None:
    one = run_record(40, folder="a", scores={"holdout": per_split(80.0, 82.0)})
    two = run_record(40, folder="b", method="grace", scores={"holdout": per_split(81.0, 86.0)})
    elsewhere = per_split(50.0) | {"per_split": {"accuracy": [50.0], "split_seed": 1}}
    other = run_record(40, folder="c", scores={"holdout": elsewhere})  # not these splits
    compare([one, two, other], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Differences in pairs" in page
    assert "+2.50 ± 2.12 (holdout, n = 2)" in page
    assert page.count("(holdout, n = ") == 1
    assert all(f">{folder}</" in page for folder in "abc")
