"""Changes to files and words, the same for the same seed: bits, bytes, blocks, numbers, values."""

import gzip
import io
import json
import random
import zipfile
from typing import Any

BYTES = (b"", b"\0", b"\xff", b"\n", b",", b'"', b"[", b"{", b"-", b"9" * 50, b"\xf0\x9f\x98\x80")
NUMBERS = (0, 1, -1, 127, 255, 256, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1)
WORDS = (
    b"nan", b"inf", b"-1", b"1e308", b"1e-400", b"null", b"true", b"{}", b"[]", b"0x10",
    b"99999999", b"1" + b"0" * 30, b"9" * 5000, b"\\ud800", b"../..", b"=1+1",
    b"<!DOCTYPE x>", b"\xed\xa0\x80",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 1e308, -5, 10**6, 10**30, "x", "", "\ud800", "😀", [], {}, [[]],
    {"a": {}}, [1, "a"], float("nan"), float("inf"),
)  # fmt: skip


def mutated(content: bytes, rng: random.Random) -> bytes:
    """One to four changes; a file of JSON or JSON lines is changed by value half of the time."""
    by_value = content[:1] in (b"{", b"[") and rng.random() < 0.5
    if by_value and (changed := _by_value(content, rng)) is not None:
        return changed
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        content = _once(content, rng)
    return content


def mutated_inside(content: bytes, rng: random.Random) -> bytes:
    """What is compressed is changed and compressed again, so that its checksum is right."""
    if content.startswith(b"\x1f\x8b"):
        return gzip.compress(mutated(gzip.decompress(content), rng))
    if not content.startswith(b"PK"):
        return mutated(content, rng)
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        chosen = rng.choice(old.namelist())
        for name in old.namelist():
            member = old.read(name)
            new.writestr(name, mutated(member, rng) if name == chosen else member)
    return made.getvalue()


def _once(content: bytes, rng: random.Random) -> bytes:
    size = len(content)
    at = rng.randrange(size + 1)
    way = rng.randrange(9)
    if way == 0 and size:  # a bit
        at = min(at, size - 1)
        return content[:at] + bytes([content[at] ^ (1 << rng.randrange(8))]) + content[at + 1 :]
    if way == 1 and size:  # a byte
        return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
    if way == 2:  # cut short
        return content[:at]
    if way == 3:  # a piece left out
        return content[:at] + content[at + rng.choice((1, 2, 8, 64, 512)) :]
    if way == 4:  # a piece twice
        end = at + rng.choice((1, 4, 32, 256, 2048))
        return content[:end] + content[at:]
    if way == 5:  # a number in bytes
        width = rng.choice((1, 2, 4, 8))
        value = rng.choice(NUMBERS) % 256**width
        return content[:at] + value.to_bytes(width, "little") + content[at + width :]
    if way == 6:  # a word in the place of another
        end = at
        while end < size and content[end : end + 1].isalnum():
            end += 1
        return content[:at] + rng.choice(WORDS) + content[end:]
    if way == 7:  # two pieces in each other's place
        one, two = sorted((at, rng.randrange(size + 1)))
        return content[:one] + content[two : two + 16] + content[one : one + 16] + content[two:]
    return content[:at] + rng.choice(BYTES) + content[at:]


def _by_value(content: bytes, rng: random.Random) -> bytes | None:
    lines = content.split(b"\n")
    at = rng.randrange(len(lines)) if len(lines) > 2 else None
    try:
        value = json.loads(content if at is None else lines[at])
    except ValueError:
        return None
    for _ in range(rng.choice((1, 1, 2))):
        value = _changed(value, rng)
    text = json.dumps(value).encode()
    if at is None:
        return text
    return b"\n".join([*lines[:at], text, *lines[at + 1 :]])


def _changed(value: Any, rng: random.Random) -> Any:
    """The value with something inside it replaced, renamed or left out."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(list(value))
        way = rng.random()
        if way < 0.15:
            return {k: v for k, v in value.items() if k != key}
        if way < 0.25:
            return {(rng.choice(("", "x", "😀")) if k == key else k): v for k, v in value.items()}
        return {k: _changed(v, rng) if k == key else v for k, v in value.items()}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        way = rng.random()
        if way < 0.2:
            return value[:at] + value[at + 1 :]
        return [_changed(v, rng) if k == at else v for k, v in enumerate(value)]
    return rng.choice(VALUES)


def strange_word(rng: random.Random) -> str:
    """A value that somebody might type after an option."""
    word = rng.choice(
        (
            "", "-1", "0", "1", "2", "nan", "inf", "-inf", "1e308", "1e20", "none", "true", "0.5",
            "1,2", "0.2,0.3", "(1", "a=b", "😀", "../..", "/", "/dev/null", "9" * 400, "a" * 300,
            "a\0b", "\udcff", "--", "cora", "auto", "cpu", "x.toml", "[bold]", "'", '"', "\n",
        )
    )  # fmt: skip
    return word if rng.random() < 0.8 else word + str(rng.choice(NUMBERS))
