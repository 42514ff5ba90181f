"""Downloads of known graphs: fetched once, compared with their checksums, refused in one line."""

import threading
from dataclasses import replace
from functools import partial
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest
from test_datasets import PUBLISHED, SHARED, needs_published

from muxgcl.errors import UserError
from muxgcl.io import DATASETS, at_hand, load_dataset
from muxgcl.io.checksums import SHA256

pytestmark = pytest.mark.usefixtures("no_data_root")


class Answer(BaseHTTPRequestHandler):
    """Serves one file, or half of it."""

    def __init__(self, content: bytes, sent: int, *args: object) -> None:
        self.content, self.sent = content, sent
        super().__init__(*args)

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()
        self.wfile.write(self.content[: self.sent])

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def tiny_photo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """`photo` as a five-node path served on this machine; yields its root and a way to serve it."""
    np.savez(
        tmp_path / "tiny.npz",
        **{"attr_data": [2.0, 1.0], "attr_indices": [0, 1], "attr_indptr": [0, 1, 2, 2, 2, 2]},
        **{"adj_data": [1.0] * 5, "adj_indices": [1, 2, 3, 4, 4], "adj_indptr": [0, 1, 2, 3, 4, 5]},
        **{"attr_shape": (5, 2), "adj_shape": (5, 5), "labels": [0, 1, 0, 1, 0]},
    )
    content = (tmp_path / "tiny.npz").read_bytes()
    servers = []

    def serve(sent: int | None = None, **counts: int) -> None:
        server = HTTPServer(("127.0.0.1", 0), partial(Answer, content, sent or len(content)))
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        sizes = {"nodes": 5, "edges": 8, "features": 2, "classes": 2} | counts
        url = f"http://127.0.0.1:{server.server_port}/"
        monkeypatch.setitem(SHA256, DATASETS["photo"].files[0], sha256(content).hexdigest())
        monkeypatch.setitem(DATASETS, "photo", replace(DATASETS["photo"], url=url, **sizes))

    yield tmp_path / "root", serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_missing_graph_is_downloaded_once(tiny_photo, monkeypatch: pytest.MonkeyPatch) -> None:
    root, serve = tiny_photo
    serve()
    assert not at_hand("photo", root)
    data = load_dataset("photo", root)
    assert data.edge_index.tolist() == [[0, 1, 1, 2, 2, 3, 3, 4], [1, 0, 2, 1, 3, 2, 4, 3]]
    assert data.x.tolist() == [[1, 0], [0, 1], [0, 0], [0, 0], [0, 0]]
    assert [path.name for path in root.rglob("*") if path.is_file()] == [
        "amazon_electronics_photo.npz"
    ]
    monkeypatch.setattr("muxgcl.io.named.urlopen", None)  # a second download would fail
    assert at_hand("photo", root)
    load_dataset("photo", root)


def test_a_download_that_is_not_the_published_file_is_refused(
    tiny_photo, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, serve = tiny_photo
    serve()
    monkeypatch.setitem(SHA256, DATASETS["photo"].files[0], "0" * 64)
    with pytest.raises(UserError, match=r"is not the published file .* nothing was kept"):
        load_dataset("photo", root)
    assert not any(path.is_file() for path in root.rglob("*"))


def test_a_download_without_end_is_refused(tiny_photo, monkeypatch: pytest.MonkeyPatch) -> None:
    root, serve = tiny_photo
    serve()
    monkeypatch.setattr("muxgcl.io.named.LARGEST", 100)
    with pytest.raises(UserError, match="is longer than 100 bytes"):
        load_dataset("photo", root)
    assert not any(path.is_file() for path in root.rglob("*"))


def test_a_file_put_there_by_hand_that_is_another_is_told_and_used(
    tiny_photo, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root, serve = tiny_photo
    serve()
    load_dataset("photo", root)
    assert "published" not in capsys.readouterr().err
    monkeypatch.setitem(SHA256, DATASETS["photo"].files[0], "0" * 64)
    assert load_dataset("photo", root).num_nodes == 5
    assert (
        "is not the published file (its sha256 is another); it is used" in capsys.readouterr().err
    )


@pytest.fixture
def unlisted(tiny_photo, monkeypatch: pytest.MonkeyPatch):
    """The same graph, with no known checksum."""
    root, serve = tiny_photo
    serve()
    monkeypatch.delitem(SHA256, DATASETS["photo"].files[0])
    return root, root / "Amazon" / "Photo" / "raw" / DATASETS["photo"].files[0]


def test_the_first_download_of_a_file_without_a_checksum_is_told_and_kept_by_its_own(
    unlisted, capsys: pytest.CaptureFixture[str]
) -> None:
    root, file = unlisted
    load_dataset("photo", root)
    err = capsys.readouterr().err
    assert "this first download is trusted, and its sha256 is kept in" in err
    assert "used as it is" not in err
    kept = file.with_name(f"{file.name}.sha256")
    assert kept.read_text() == f"{sha256(file.read_bytes()).hexdigest()}  {file.name}\n"
    load_dataset("photo", root)
    assert capsys.readouterr().err == ""  # once is enough


def test_a_file_that_is_not_its_first_download_is_refused(unlisted) -> None:
    root, file = unlisted
    load_dataset("photo", root)
    whole = file.read_bytes()
    file.write_bytes(whole + b"\0")
    with pytest.raises(UserError, match="is not the file that was downloaded first"):
        load_dataset("photo", root)
    file.with_name(f"{file.name}.sha256").write_text("0" * 64)
    file.unlink()
    with pytest.raises(UserError, match="not the file that was downloaded before; nothing was"):
        load_dataset("photo", root)
    assert not file.exists()
    file.write_bytes(whole)
    for damaged in ("", "0" * 63, "Z" * 64, "\xff" * 64):
        file.with_name(f"{file.name}.sha256").write_text(damaged)
        with pytest.raises(UserError, match=r"\.sha256"):
            load_dataset("photo", root)


def test_a_file_put_there_by_hand_without_a_checksum_is_told_and_used(
    unlisted, capsys: pytest.CaptureFixture[str]
) -> None:
    root, file = unlisted
    load_dataset("photo", root)
    file.with_name(f"{file.name}.sha256").unlink()
    capsys.readouterr()
    assert load_dataset("photo", root).num_nodes == 5
    assert capsys.readouterr().err == (
        f"muxgcl: no checksum of {file} is known; it is used as it is\n"
    )
    assert [path.name for path in file.parent.iterdir()] == [file.name]  # loading writes nothing


def test_every_graph_without_checksums_is_named_in_the_documents() -> None:
    unknown = [name for name, d in DATASETS.items() if not all(f in SHA256 for f in d.files)]
    assert unknown == ["coauthor-cs", "coauthor-physics", "dblp", "wikics"]
    text = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text()
    assert "Coauthor CS, Coauthor Physics, DBLP and WikiCS" in text


@needs_published
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_checksums_are_those_of_the_published_files(name: str) -> None:
    known = DATASETS[name]
    for file in known.files:
        content = (SHARED / known.folder / "raw" / file).read_bytes()
        assert SHA256[file] == sha256(content).hexdigest()


def test_half_a_download_leaves_no_file(tiny_photo) -> None:
    root, serve = tiny_photo
    serve(sent=100)
    with pytest.raises(UserError, match="could not be downloaded"):
        load_dataset("photo", root)
    assert not any(path.is_file() for path in root.rglob("*"))


def test_a_graph_of_other_sizes_is_refused(tiny_photo) -> None:
    root, serve = tiny_photo
    serve(edges=10)
    with pytest.raises(UserError, match=r"\(5, 10, 2, 2\), got \(5, 8, 2, 2\)"):
        load_dataset("photo", root)


def test_without_a_network_one_line_names_files_address_and_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    waits = []

    def no_network(url: str, timeout: float) -> None:
        waits.append(timeout)
        raise OSError("Name or service not known")

    monkeypatch.setattr("muxgcl.io.named.urlopen", no_network)
    with pytest.raises(UserError) as caught:
        load_dataset("pubmed", tmp_path)
    message = str(caught.value)
    assert "\n" not in message
    assert "Name or service not known" in message
    assert DATASETS["pubmed"].url in message
    assert str(tmp_path / "Planetoid" / "PubMed" / "raw") in message
    assert all(file in message for file in DATASETS["pubmed"].files)
    assert waits == [10]  # the first failure ends it
