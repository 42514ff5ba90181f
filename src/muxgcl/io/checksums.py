"""The published raw files by their sha256: a download that differs is refused, a copy is noted.

Of the larger graphs (Coauthor, DBLP, WikiCS) no sha256 is known here. Their first download is
trusted: its sha256 is kept beside it, and whatever is found under that name later must match.
"""

import hashlib
import re
from pathlib import Path

from muxgcl.errors import UserError
from muxgcl.io.files import write_text
from muxgcl.io.safety import check_file, parsing

SHA256: dict[str, str] = {
    "ind.cora.allx": "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
    "ind.cora.ally": "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
    "ind.cora.graph": "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
    "ind.cora.test.index": "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
    "ind.cora.tx": "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
    "ind.cora.ty": "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
    "ind.cora.x": "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
    "ind.cora.y": "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
    "ind.citeseer.allx": "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
    "ind.citeseer.ally": "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
    "ind.citeseer.graph": "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
    "ind.citeseer.test.index": "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
    "ind.citeseer.tx": "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
    "ind.citeseer.ty": "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
    "ind.citeseer.x": "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
    "ind.citeseer.y": "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
    "ind.pubmed.allx": "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
    "ind.pubmed.ally": "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
    "ind.pubmed.graph": "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
    "ind.pubmed.test.index": "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
    "ind.pubmed.tx": "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
    "ind.pubmed.ty": "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
    "ind.pubmed.x": "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
    "ind.pubmed.y": "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
    "amazon_electronics_photo.npz": "616582b757950a34e573543c4d3c02e1087c11d5ad3b324aa1b0ddb95db1c99d",  # noqa: E501
    "amazon_electronics_computers.npz": "be58a1ec75405bfb2f9917b85cc34eb29c606df5a988da355468dda97d19b753",  # noqa: E501
}


def sha256_of(path: Path) -> str:
    """The sha256 of a file's content, in hexadecimal digits."""
    with parsing(path, None), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_published(name: str, content: bytes) -> bool:
    """Whether this is the file that was published under that name; True where none is known."""
    return SHA256.get(name) in (None, hashlib.sha256(content).hexdigest())


def differing(folder: Path, names: tuple[str, ...]) -> list[str]:
    """The files in a folder that are known and are not as published."""
    return [name for name in names if name in SHA256 and sha256_of(folder / name) != SHA256[name]]


def kept_file(path: Path) -> Path:
    """Where the sha256 of the first download of a file is kept, as `sha256sum` writes it."""
    return path.with_name(f"{path.name}.sha256")


def kept(path: Path) -> str | None:
    """The sha256 of the first download of a file, or None where none was kept."""
    note = kept_file(path)
    if not note.exists():
        return None
    with parsing(note, None):
        digest = check_file(note).read_text("ascii")[:64]
    if not re.fullmatch("[0-9a-f]{64}", digest):
        raise UserError(f"{note} is damaged: expected 64 hexadecimal digits")
    return digest


def trust(path: Path, content: bytes) -> bool:
    """Keep the sha256 of a download that no list knows; whether this was its first one."""
    digest, before = hashlib.sha256(content).hexdigest(), kept(path)
    if before is None:
        write_text(kept_file(path), f"{digest}  {path.name}\n")
    elif before != digest:
        raise UserError(
            f"the download of {path.name} is not the file that was downloaded before; nothing was "
            f"kept (remove {kept_file(path)} to trust it)"
        )
    return before is None


def unproven(folder: Path, names: tuple[str, ...]) -> list[str]:
    """The files of which neither a list nor a first download tells what they should be.

    A file that differs from its first download is a `UserError`.
    """
    found = []
    for path in (folder / name for name in names if name not in SHA256):
        digest = kept(path)
        if digest is None:
            found.append(path.name)
        elif digest != sha256_of(path):
            raise UserError(
                f"{path} is not the file that was downloaded first (its sha256 is another): remove "
                f"it to download it again, or {kept_file(path).name} to use it"
            )
    return found
