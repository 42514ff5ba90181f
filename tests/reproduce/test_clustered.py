"""A cell of clusterings says where its seeds came about in two ways."""

from pathlib import Path

from reproduce_cases import record_of

from muxgcl.reproduce.artefacts import Scope
from muxgcl.reproduce.clustered import ON_ALL_ROWS, two_ways
from muxgcl.reproduce.job import Job
from muxgcl.reproduce.records import Found, RecordStore

HOPS = Scope(seeds=4, splits=3).hops


def recorded(folder: Path, jobs: list[Job], earlier: int) -> Found:
    store = RecordStore(folder)
    for place, job in enumerate(jobs):
        commit = ON_ALL_ROWS[0] if place < earlier else "b41363c6e869-dirty"
        store.append(job.file, record_of(job, commit=commit))
    return Found(store.lines())


def test_seeds_before_and_since_are_told_for_a_large_table(tmp_path: Path) -> None:
    jobs = HOPS.trained("mux-hop", "pubmed")
    told = two_ways(recorded(tmp_path, jobs, 3), [jobs])
    assert told.startswith(" MUX-GCL over hops on PubMed mixes two ways of k-means: ")
    assert "seeds 710 to 712 compared its starts on all rows, seed 713 on a sample" in told


def test_nothing_is_told_of_one_way_or_of_a_small_table(tmp_path: Path) -> None:
    large, small, narrow = (
        HOPS.trained(*cell)
        for cell in (("mux-hop", "pubmed"), ("mux-hop", "computers"), ("mux-gcl", "pubmed"))
    )
    assert two_ways(recorded(tmp_path / "0", large, 0), [large]) == ""
    assert two_ways(recorded(tmp_path / "4", large, 4), [large]) == ""
    assert two_ways(recorded(tmp_path / "s", small, 2), [small]) == ""
    assert two_ways(recorded(tmp_path / "n", narrow, 2), [narrow, []]) == ""
    assert two_ways(Found([]), [large, HOPS.trained("ggd", "pubmed")]) == ""
