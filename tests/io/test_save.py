"""Every format that embeddings leave in, read back by its own library."""

import csv
import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cli_cases import ask

import muxgcl
from muxgcl import UserError
from muxgcl.evaluate.nearest import nearest
from muxgcl.io.save import TABLES, VECTORS, check_format, save_table
from muxgcl.runs.folder import Run

Array = np.ndarray
TEXT = np.array(["n0", "=1+1", "ü", "a,b", 'say "x"'])
WHOLE = np.array([7, 3, 900, 4, 0])


def table() -> Array:
    return np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)


def read(path: Path) -> tuple[list, Array]:
    """Ids and table, as somebody without muxgcl reads them."""
    ending = check_format(path)
    if ending == ".npz":
        with np.load(path) as arrays:
            return arrays["id"].tolist(), arrays["embedding"]
    if ending in (".parquet", ".arrow", ".feather"):
        if ending == ".parquet":
            found = pytest.importorskip("pyarrow.parquet").read_table(path)
        elif ending == ".arrow":
            found = pytest.importorskip("pyarrow").ipc.open_file(path).read_all()
        else:
            found = pytest.importorskip("pyarrow.feather").read_table(path)
        columns = [found[name].to_numpy() for name in found.column_names[1:]]
        return found["id"].to_pylist(), np.stack(columns, 1)
    if ending == ".safetensors":
        from safetensors import safe_open

        with safe_open(path, "np") as file:
            z, named = file.get_tensor("embedding"), file.metadata()
            ids = json.loads(named["id"]) if named else file.get_tensor("id").tolist()
        return ids, z
    if ending == ".neo4j.csv":
        with path.open(newline="", encoding="utf-8") as lines:
            header, *rows = csv.reader(lines)
        assert header == ["id:ID", "embedding:float[]"]
        return [row[0] for row in rows], np.array([row[1].split(";") for row in rows], np.float32)
    raise AssertionError(ending)


@pytest.mark.parametrize("ids", [TEXT, WHOLE], ids=["text", "whole numbers"])
@pytest.mark.parametrize(
    "name", ["z.npz", "z.parquet", "z.arrow", "z.feather", "z.safetensors", "z.neo4j.csv"]
)
def test_what_was_written_is_read_back_to_the_bit(tmp_path: Path, name: str, ids: Array) -> None:
    save_table(tmp_path / name, ids, table())
    got, z = read(tmp_path / name)
    assert [*map(str, got)] == [*map(str, ids.tolist())]
    assert z.dtype == np.float32
    assert np.array_equal(z, table())
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_word2vec_text_is_a_line_of_sizes_and_a_line_a_node(tmp_path: Path) -> None:
    ids = np.array(["a", "=1", "ü"])
    save_table(tmp_path / "z.vec", ids, table()[:3])
    head, *lines = (tmp_path / "z.vec").read_text(encoding="utf-8").splitlines()
    assert head == "3 3"
    assert [line.split(" ")[0] for line in lines] == ids.tolist()
    z = np.array([line.split(" ")[1:] for line in lines], np.float32)
    assert np.array_equal(z, table()[:3])
    with pytest.raises(UserError, match="has no ids with blanks, got 'two words'"):
        save_table(tmp_path / "y.vec", np.array(["two words"]), table()[:1])
    assert not (tmp_path / "y.vec").exists()


def test_an_index_of_whole_ids_finds_ids_and_one_of_texts_finds_rows(tmp_path: Path) -> None:
    faiss = pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    z = table()
    z[4] = 0
    for ids, name in ((WHOLE, "a.faiss"), (TEXT, "b.faiss")):
        save_table(tmp_path / name, ids, z)
        index = faiss.read_index(str(tmp_path / name))
        cosines, found = index.search(z[:1] / np.linalg.norm(z[0]), 5)
        rows, want = nearest(z, np.array([0]), 4)
        expected = [0, *rows[0].tolist()]
        assert found[0].tolist() == (ids[expected].tolist() if ids is WHOLE else expected)
        np.testing.assert_allclose(cosines[0], [1, *want[0]], atol=1e-6)
    assert np.array_equal(np.load(tmp_path / "b.ids.npy"), TEXT)
    assert not (tmp_path / "a.ids.npy").exists()


def test_the_nearest_in_an_index_are_the_neighbours_of_the_command_line(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faiss = pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    file = tmp_path / "z.faiss"
    assert ask(capsys, "embed", str(trained), "--out", str(file))[0] == 0
    index, ids = faiss.read_index(str(file)), np.load(tmp_path / "z.ids.npy")
    for name in ("n3", "n17", "n42"):
        row = int(np.flatnonzero(ids == name)[0])
        cosines, found = index.search(index.reconstruct(row)[None], 6)
        others = [(ids[at], c) for at, c in zip(found[0], cosines[0], strict=True) if at != row]
        want = muxgcl.neighbours(trained, [name], k=5)[name]
        assert [other for other, _ in others] == [other for other, _ in want]
        np.testing.assert_allclose([c for _, c in others], [c for _, c in want], atol=1e-5)


@pytest.mark.parametrize("ending", [*TABLES, *VECTORS])
def test_no_format_takes_nan(tmp_path: Path, ending: str) -> None:
    for ids in (np.arange(2), np.array(["a", "b"])):
        with pytest.raises(UserError, match="is not written: the table holds NaN or infinity"):
            save_table(tmp_path / f"z{ending}", ids, np.array([[1.0], [np.nan]]))
    assert not list(tmp_path.iterdir())


def test_an_ending_without_a_format_and_one_without_its_package_are_refused_first(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match=r"expected a file ending in .*\.faiss, got 'z.xlsx'"):
        muxgcl.embed(trained, out=tmp_path / "z.xlsx")
    with pytest.raises(UserError, match=r"expected a file ending in .*, got 'c.faiss'"):
        muxgcl.cluster_run(trained, clusters=2, out=tmp_path / "c.faiss")
    monkeypatch.setattr("muxgcl.io.save.find_spec", lambda name: None)
    needs = ((".faiss", "faiss-cpu"), (".arrow", "pyarrow"), (".parquet", "pyarrow"))
    for ending, package in needs:
        with pytest.raises(UserError, match=f"needs .*: pip install {package}"):
            muxgcl.embed(trained, out=tmp_path / f"z{ending}")
    assert not list(tmp_path.iterdir())


def test_scores_of_links_hold_no_formulas(trained: Path, tmp_path: Path) -> None:
    ids, z = Run(trained).embeddings()
    renamed = np.array(["=1+1", "@x", *ids.tolist()[2:]])
    run = Run(tmp_path / "run")
    (tmp_path / "run").mkdir()
    for name in ("config.toml", "embeddings.npz"):
        (run.path / name).write_bytes((trained / name).read_bytes())
    np.savez(run.embeddings_file, id=renamed, embedding=z)
    (tmp_path / "pairs.csv").write_text("source,target\n=1+1,@x\n=1+1,n5\n")
    muxgcl.score_links(run.path, tmp_path / "pairs.csv", out=tmp_path / "scores.csv")
    with (tmp_path / "scores.csv").open(newline="") as lines:
        _, *rows = csv.reader(lines)
    assert [row[:2] for row in rows] == [["'=1+1", "'@x"], ["'=1+1", "n5"]]


def test_a_faiss_index_never_stands_beside_the_ids_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    file, beside = tmp_path / "z.faiss", tmp_path / "z.ids.npy"
    save_table(file, np.array(["a", "b"]), np.eye(2, dtype=np.float32))
    before = file.read_bytes(), beside.read_bytes()
    ids, table = np.array(["c", "d", "e"]), np.eye(3, dtype=np.float32)
    rename, seen = os.replace, []

    def killed(at: int) -> Callable[[str, Path], None]:
        def replace(one: str, two: Path) -> None:
            seen.append(two)
            if len(seen) == at:
                raise KeyboardInterrupt
            rename(one, two)

        return replace

    for at in (1, 2):
        seen.clear()
        monkeypatch.setattr(os, "replace", killed(at))
        with pytest.raises(KeyboardInterrupt):
            save_table(file, ids, table)
        assert not file.exists()
        monkeypatch.setattr(os, "replace", rename)
        save_table(file, ids, table)
        assert np.load(beside).tolist() == ["c", "d", "e"]
        file.write_bytes(before[0])
        beside.write_bytes(before[1])

    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(np, "save", full)
        with pytest.raises(UserError, match="No space left on device"):
            save_table(file, ids, table)
    assert (file.read_bytes(), beside.read_bytes()) == before

    sync, synced = os.fsync, []

    def full_at(at: int) -> Callable[[int], None]:
        def fsync(handle: int) -> None:
            synced.append(handle)
            if len(synced) == at:
                full()
            sync(handle)

        return fsync

    for at in (1, 2):  # the index, its ids
        synced.clear()
        monkeypatch.setattr(os, "fsync", full_at(at))
        with pytest.raises(UserError, match="No space left on device"):
            save_table(file, ids, table)
        assert (file.read_bytes(), beside.read_bytes()) == before
    assert {one.name for one in tmp_path.iterdir()} == {file.name, beside.name}


def test_faiss_takes_no_id_that_it_would_change(tmp_path: Path) -> None:
    pytest.importorskip("faiss", reason="faiss-cpu is not installed")
    ids = np.array([1, 2**64 - 1], np.uint64)
    with pytest.raises(UserError, match=r"ids below 2\^63, got 18446744073709551615"):
        save_table(tmp_path / "z.faiss", ids, np.eye(2, dtype=np.float32))
    assert not list(tmp_path.iterdir())
