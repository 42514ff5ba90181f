"""What the README and the docs show is what the records give."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from reproduce_cases import SMALL, fill

from documents import (
    any_graph,
    coverage,
    engine,
    label_free,
    new_nodes,
    reliability,
    results,
    scales,
    short,
    widths,
)
from documents.results import BEGIN, END, with_block
from muxgcl.errors import UserError
from muxgcl.evaluate import paired_difference
from muxgcl.io.files import append_lines
from muxgcl.io.schema import read_lines
from muxgcl.reproduce import hop_tables
from muxgcl.reproduce.artefacts import ARTEFACTS, CONTROLS, Scope, plan
from muxgcl.reproduce.check import HALVES
from muxgcl.reproduce.job import BOUNDS, SCORES, SIMILARITIES, SOFT_NEGATIVES, settings_of
from muxgcl.reproduce.paper import TITLES
from muxgcl.reproduce.records import Found, RecordStore
from muxgcl.reproduce.render import render, write_figure
from muxgcl.runs.auto import BENCHMARKS
from muxgcl.runs.plan import Plan
from muxgcl.runs.settings import origin

ROOT = Path(__file__).resolve().parents[2]


def test_only_what_stands_between_the_markers_is_replaced() -> None:
    text = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert with_block(text, r"new \1", "x") == f"before\n{BEGIN}\n\nnew \\1\n{END}\nafter\n"
    for broken in ("", BEGIN, f"{END} {BEGIN}", text + text):
        with pytest.raises(UserError, match="x needs one"):
            with_block(broken, "new", "x")


@pytest.mark.parametrize(
    ("marker", "source"),
    {
        "results": results,
        "engine": engine,
        "coverage": coverage,
        "reliability": reliability,
        "width": widths,
        "new-nodes": new_nodes,
        "scale": scales,
        "short": short,
        "label-free": label_free,
        "any-graph": any_graph,
    }.items(),
)
def test_readme_and_docs_show_what_the_records_give(marker: str, source: ModuleType) -> None:
    """If this fails: `make results`."""
    blocks = source.blocks(ROOT)
    assert blocks
    for path, block in blocks.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        assert text == with_block(text, block, str(path), marker), f"{path} is not up to date"


def test_the_records_of_reliability_are_clean_and_large_enough() -> None:
    """100 kills, 10,000 changes, not one fault; the last of each at a commit to look up."""
    kills, fuzz = (read_lines(ROOT / "records" / f"{name}.jsonl") for name in ("kills", "fuzz"))
    assert kills[-1]["kills"] >= 100
    assert kills[-1]["full_disks"] >= 20
    assert (kills[-1]["differ"], kills[-1]["full_differ"]) == (0, 0)
    needed = {"run", "train", "embed", "evaluate", "cluster", "tune", "reproduce"}
    assert needed <= set(kills[-1]["commands"])
    assert max(record["mutations"] for record in fuzz) >= 10_000
    assert not any(record[name] for record in fuzz for name in reliability.FAULTS)
    assert not any(records[-1]["commit"].endswith("-dirty") for records in (kills, fuzz))


def test_recorded_intervals_cover_from_five_seeds_on_and_are_not_given_before() -> None:
    rows = read_lines(ROOT / "records" / "coverage.jsonl")
    now = [row for row in rows if row["interval"] == "t"]
    assert {row["seeds"] for row in now} == {1, 3, 5, 10}
    for row in now:
        if row["seeds"] < 5:
            assert row["coverage"] is None, row
        else:
            assert 0.93 <= row["coverage"] <= 0.97, row


def test_parity_is_told_with_its_standard_error_and_interval(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    fast, plain = rng.normal(85, 0.1, size=(2, 5, 20))
    gap = paired_difference(fast, plain)
    paths = {
        "fast": {"mean": 85.004, "std": 0.5, "n": 4},
        "plain": {"mean": 84.996, "std": 1, "n": 4},
    }
    scores = {"fast": fast.tolist(), "plain": plain.tolist()}
    row = {"dataset": "cora", "epochs": 120, "accuracy": paths, "per_split": scores}
    row |= {"commit": "4e535e68b085"}
    (tmp_path / "parity.jsonl").write_text(json.dumps(row) + "\n")
    table = engine.parity_table(tmp_path / "parity.jsonl")
    assert "All rows are at settings that the preset had before (4e535e6), " in table.notes[0]
    assert "Test nodes are of both halves of the labels." in table.notes[0]
    now = settings_of(Plan.make("mux-gcl", "best", "cora"))
    todays = row | {"settings": now["settings"] | now["train"], "protocol": "holdout"}
    append_lines(tmp_path / "today.jsonl", [todays])
    (note,) = engine.parity_table(tmp_path / "today.jsonl").notes
    assert "before" not in note
    assert "halves" not in note
    (line,) = table.rows
    said = f"{gap.mean:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]"
    assert line == ["Cora", "120", "85.00 ± 0.25", "85.00 ± 0.50", said]


def test_figures_in_the_docs_are_those_of_the_records(tmp_path: Path) -> None:
    store = RecordStore(ROOT / "records")
    drawn = []
    for artefact in ("figure1", "figure3", "proposition"):
        rendered = render(artefact, store, Scope())
        for name in rendered.drawn:
            drawn += write_figure(rendered, name, tmp_path, ["svg"])
    assert drawn
    for file in drawn:
        shown = ROOT / "docs" / "figures" / file.name
        assert shown.read_bytes() == file.read_bytes(), f"run `make results`: {file.name}"


def test_a_case_of_new_nodes_is_its_mean_and_the_difference_to_training(tmp_path: Path) -> None:
    def row(seed: int, known: float, hidden: float) -> dict[str, object]:
        names = (new_nodes.KNOWN, *new_nodes.CASES)
        cases = {c: {"accuracy": [hidden - 1, hidden + 1]} for c in names}
        cases[new_nodes.KNOWN] = {"accuracy": [known]}
        facts = {"dataset": "cora", "method": "mux-hop", "preset": "best", "sample": None}
        return {**facts, "seed": seed, "splits": 2, "counted": 10 * seed, "cases": cases}

    append_lines(tmp_path / "r.jsonl", [row(1, 0.0, 0.0), row(1, 80.0, 75.0), row(2, 90.0, 81.0)])
    table = new_nodes.new_nodes_table(tmp_path / "r.jsonl")
    assert table.rows == [["Cora", "`mux-hop` (best)", "85.0", *["78.0 (-7.0)"] * 3]]
    assert "30 of Cora in all" in table.notes[0]


def test_a_sample_is_shown_beside_all_nodes(tmp_path: Path) -> None:
    lines = [
        {"dataset": "photo", "nodes": 2000, "anchors": None, "accuracy": [90.0, 92.0]},
        {"dataset": "photo", "nodes": 2000, "anchors": 512, "accuracy": [90.0, 91.0]},
        {"dataset": "photo", "nodes": 2000, "anchors": 512, "accuracy": [91.0, 92.0]},
        {"dataset": "cora", "nodes": 2708, "anchors": 2048, "accuracy": [80.0]},
    ]
    append_lines(tmp_path / "sampled.jsonl", lines)
    table = scales.sample_table(tmp_path / "sampled.jsonl")
    assert table.header == ["$B = M$", "Cora", "Photo"]
    assert table.rows == [
        ["all nodes", "—", "91.00"],
        ["512", "—", "91.00 (+0.00, 2 seeds)"],
        ["2,048", "—", "all"],  # the graph has no more nodes
    ]


def test_a_network_is_shown_by_sample_and_steps(tmp_path: Path) -> None:
    def row(hidden: int, size: int, steps: int, accuracy: float, **more: object) -> dict[str, Any]:
        changes = {"hidden": hidden, "width": 256, "norm": "layer", "lr": 1e-3}
        facts = {"dataset": "pubmed", "anchors": size, "epochs": steps, "accuracy": accuracy}
        return {**facts, "changes": changes, **more}

    lines = [row(512, 256, 300, 80.0), row(2048, 1024, 150, 81.0), row(2048, 256, 300, 82.0)]
    lines += [row(64, 1, 1, 1.0, dataset="photo"), row(64, 1, 1, 1.0, changes={"epochs": 600})]
    append_lines(tmp_path / "s.jsonl", lines)
    table = scales.network_table(tmp_path / "s.jsonl")
    assert table.header == ["hidden and width, norm", "256 x 300", "1,024 x 150"]
    assert table.rows == [
        ["2,048 and 256, layer", "82.00", "81.00"],
        ["512 and 256, layer", "80.00", "—"],
    ]


def test_a_fanout_is_shown_by_graph(tmp_path: Path) -> None:
    lines = [
        {"dataset": "photo", "changes": {"fanout": fanout}, "accuracy": accuracy}
        for fanout, accuracy in ((3, 90.0), (0, 91.0))
    ]
    lines.append({"dataset": "pubmed", "changes": {"fanout": 0}, "accuracy": 80.0})
    append_lines(tmp_path / "f.jsonl", lines)
    table = scales.fanout_table(tmp_path / "f.jsonl")
    assert table.header == ["fanout", "PubMed", "Photo"]
    assert table.rows == [["all", "80.00", "91.00"], ["3", "—", "90.00"]]


def test_a_run_is_shown_beside_what_was_said_before(tmp_path: Path) -> None:
    told = {"command": "muxgcl run x", "estimate": ["about 9 min"], "first_s": 630.0}
    scores = {"mux-hop": 88.0, "raw": 80.0, "X|AX|A^2X": 87.5}
    line = {**told, "peak_mib": 3072, "scores": scores, "commit": "abc"}
    append_lines(tmp_path / "r.jsonl", [{"command": "other", "first_s": 1.0}, line])
    table = scales.run_table(tmp_path / "r.jsonl")
    want = ["`muxgcl run x`", "about 9 min", "10.5 min", "3.0 GiB", "88.00", "87.50 (X, AX, A^2X)"]
    assert table.rows == [[*want, "abc"]]


def test_a_width_is_shown_beside_the_full_readout(tmp_path: Path) -> None:
    assert {cell for row in widths.width_table(tmp_path / "none").rows for cell in row[1:]} == {"—"}
    facts = {"dataset": "photo", "columns": 3817, "labels": "development"}
    lines = [
        {**facts, "width": 256, "accuracy": [90.0, 92.0]},
        {**facts, "width": 256, "accuracy": [92.0, 94.0]},
        {**facts, "width": None, "accuracy": [93.0, 93.0]},
    ]
    append_lines(tmp_path / "width.jsonl", lines)
    rows = {row[0]: row[4] for row in widths.width_table(tmp_path).rows}
    assert rows["256"] == "92.00 (-1.00)"
    assert rows["full"] == "93.00 (3,817)"
    assert rows["512"] == "—"


def test_criteria_without_labels_are_ranked_against_accuracy(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {
            "dataset": "photo",
            "method": "mux-hop",
            "accuracy": {"late": value, "last": 9.0},
            "label_free": dict.fromkeys(label_free.ROUGH, value) | {"far": -value},
        }
        for value in (1.0, 2.0, 4.0)
    ]
    lines.append({"dataset": "photo", "accuracy": {"late": 0.0}, "error": "failed"})
    append_lines(tmp_path / label_free.HOPS, lines)
    others = [  # the smaller of the two falls where accuracy rises, though each of them rises once
        {
            **lines[0],
            "method": "ggd",
            "accuracy": {"last": one},
            "label_free": dict.fromkeys(label_free.ROUGH, one) | both,
        }
        for one, both in (
            (1.0, {"stability": 0.6, "modularity": 0.5}),
            (2.0, {"stability": 0.4, "modularity": 0.9}),
            (3.0, {"stability": 0.7, "modularity": 0.3}),
        )
    ]
    append_lines(tmp_path / label_free.TUNED, others)
    clustered, hops = label_free.tables(tmp_path)
    assert hops.header == ["criterion", "Photo (3)"]
    assert hops.rows[0] == ["effective rank", "+1.00"]
    assert ["cosine of random pairs", "-1.00"] in hops.rows
    assert clustered.header == ["criterion", "Photo (3)"]
    assert clustered.rows[0] == ["structure: the smaller of the next two", "-1.00"]
    assert clustered.rows[1] == ["stability of clusters", "+0.50"]


def test_every_file_of_records_is_described() -> None:
    folder = ROOT / "records"
    described = (folder / "README.md").read_text(encoding="utf-8")
    missing = [
        file.name
        for file in folder.glob("*.jsonl")
        if f"`{file.name}`" not in described and not file.name.endswith("-search.jsonl")
    ]
    assert missing == []


def looked_at() -> list[str]:
    """The rows of evaluation.md on what was seen of the report half's labels."""
    page = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")
    section = page.split("### What was looked at")[1].split("\n###")[0]
    return [line for line in section.splitlines() if line.startswith("| ")][2:]


def test_every_record_that_read_other_labels_than_the_development_halfs_is_told() -> None:
    told = "\n".join(looked_at())
    untold = {
        file.name
        for file in (ROOT / "records").glob("*.jsonl")
        for row in read_lines(file)
        if row.get("dataset") in HALVES
        and {"accuracy", "accuracies", "result", "cases", "validation"} & row.keys()
        and row.get("kind") not in (SIMILARITIES, SOFT_NEGATIVES, BOUNDS)
        and row.get("labels") != "development"
        and f"`records/{file.name}`" not in told
    }
    assert untold == set()


def test_counts_in_what_was_looked_at_are_those_of_the_records() -> None:
    told, folder = "\n".join(looked_at()), ROOT / "records"
    wanted = {(job.hash, job.seed) for job in plan(ARTEFACTS, results.SHOWN)}
    lines = RecordStore(folder).lines()
    over_hops = [line.record for line in lines if line.file == "hops.jsonl"]
    unseen = [row for row in over_hops if (row["hash"], row["seed"]) not in wanted]
    methods = {row["method"] for row in unseen}
    assert methods == {"grace", "ma-gcl", "bgrl"}
    assert f"{len(unseen)} trainings that no table shows" in told
    first = [line.record for line in lines if line.record["schema"] == 1]
    first = [row for row in first if row["kind"] == SCORES]
    on_test = sum(row["protocol"] == "paper" for row in first)
    moved = [row for row in read_lines(folder / "earlier.jsonl") if row.get("schema") == 1]
    assert f'{len(first)} lines of `"schema": 1` ({on_test} of them by protocol `paper`)' in told
    assert f"and {len(moved)} that were moved since" in told
    hidden = [row["method"] for row in read_lines(folder / "new-nodes.jsonl")]
    assert f"{hidden.count('mux-hop')} trainings of `mux-hop` (`best` and `quick`)" in told


def test_the_measures_of_features_and_edges_in_the_docs_are_the_recorded_ones() -> None:
    rows = [
        row for row in read_lines(ROOT / "records" / "noise.jsonl") if row["kind"] == "agreement"
    ]
    groups: dict[str, list[dict[str, Any]]] = {"graphs": [], "faint": [], "strong": []}
    for row in rows:
        name = "graphs" if "dataset" in row else "strong" if row["signal"] > 0.12 else "faint"
        groups[name].append(row)
    shares = {
        name: [before / after for row in found for before, after in row["pairs"]]
        for name, found in groups.items()
    }
    edges = {name: [e for r in found for e in r.get("edges", ())] for name, found in groups.items()}
    pages = {page.stem[:4]: page.read_text("utf-8") for page in (ROOT / "docs").rglob("*.md")}
    noisy, random, hops = (" ".join(pages[name].split()) for name in ("0016", "0017", "mux-"))

    def span(values: list[float], digits: int) -> str:
        return f"{min(values):.{digits}f} to {max(values):.{digits}f}"

    assert f"is {span(shares['faint'], 3)} on block models" in noisy
    assert f"{span(shares['strong'], 3)} at 20 %" in noisy
    assert f"and {span(shares['graphs'], 2)} on the five benchmark graphs" in noisy
    assert f"$R_0$ is {span(shares['graphs'], 2)} of $R_L$" in hops
    first, second = zip(*edges["faint"], strict=True)
    measured = [value for value in second if value]
    assert -1 < min(first) < max(first) < 5
    assert f"between {min(measured):.1f} and {max(measured):.0f}; where the first was" in random
    (alone,) = (one for one, two in edges["faint"] if not two)
    assert f"where the first was {alone:.1f} and so told by itself" in random
    strong = [one for one, _ in edges["strong"]]
    assert f"At 20 % the first is {span(strong, 1)}" in random
    assert min(one for one, _ in edges["graphs"]) > 200


def test_the_questions_page_counts_whose_settings_the_presets_have() -> None:
    methods = [name for name in Scope().rows("table1") if name not in CONTROLS]
    whose = [origin(method, "paper", dataset) for method in methods for dataset in BENCHMARKS]
    official, mixed, ours = (whose.count(one) for one in ("official", "mixed", "ours"))
    told = f"of the {len(whose)} pairs of a method of Table I and a graph, {official} are wholly "
    told += f"theirs, {mixed} in part, and {ours} are ours."
    assert told in " ".join((ROOT / "docs" / "faq.md").read_text(encoding="utf-8").split())


def test_the_page_of_limits_quotes_the_records() -> None:
    page = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
    found, asked = Found(RecordStore(ROOT / "records").lines()), results.SHOWN.hops

    def mean(dataset: str, measure: str = "accuracy") -> float:
        ours = found.of(asked.trained("mux-hop", dataset))
        return float(np.mean(hop_tables.scores(ours, measure=measure)))

    several = {d: np.mean(hop_tables.scores(found.of(asked.committee(d)))) for d in BENCHMARKS}
    cora, citeseer, _, photo, computers = (f"{several[d]:.2f}" for d in BENCHMARKS)
    assert (
        f"{cora} % of the test nodes rightly on Cora, {citeseer} on CiteSeer, {photo} on " in page
    )
    assert f"{photo} on Photo and {computers} on Computers" in page
    assert f"({mean('pubmed'):.2f} by one seed)" in page
    for dataset, percent in (("cora", " % rightly"), ("citeseer", "")):
        everywhere = mean(dataset, "everywhere")
        one = f"{mean(dataset):.2f}{percent} on {TITLES[dataset]} ({everywhere:.2f})"
        assert one in page
    for dataset in BENCHMARKS:
        assert f" {mean(dataset, 'nmi'):.3f} on {TITLES[dataset]}" in page


def test_a_cell_more_than_a_point_short_of_the_paper_is_listed(tmp_path: Path) -> None:
    found = Found(fill(tmp_path).lines())
    rows = short.short_table(found, SMALL).rows
    assert rows[0] == ["MUX-GCL on Photo †", "84.62", "93.9", "-9.28"]
    assert [float(row[-1]) for row in rows] == sorted(float(row[-1]) for row in rows)
    assert not any("Cora" in row[0] for row in rows)  # none is short by more than a point there


def test_ours_is_held_against_the_fastest_dense_step(tmp_path: Path) -> None:
    facts = {"kind": "epoch", "dataset": "photo", "nodes": 7650, "width": 256, "device": "H200"}
    facts |= {"precision": "x", "peak_mib": 10.0}
    lines = [
        {**facts, "backend": "reference", "epoch_ms": 30.0, "commit": "4e535e68b085"},
        {**facts, "backend": "fused", "epoch_ms": 5.0, "commit": "4e535e68b085"},
        {**facts, "backend": "reference", "epoch_ms": 40.0, "commit": "09bbd13"},
        {**facts, "backend": "fused", "epoch_ms": 4.0, "commit": "09bbd13"},
    ]
    append_lines(tmp_path / "engine.jsonl", lines)
    table = engine.epochs_table(engine.read(tmp_path / "engine.jsonl"))
    (row,) = table.rows
    assert [row[1], row[3], *row[5:]] == ["4 ms", "30 ms", "7.5x", "09bbd13, 4e535e6"]
    assert "Older than the rest" not in table.notes[1]
    older = engine.epochs_table(engine.read(tmp_path / "engine.jsonl")[:1] + lines[1:2])
    assert "Older than the rest: Photo." in older.notes[1]
