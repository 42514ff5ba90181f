"""The sample that all trials of a study share, and how a study keeps it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from muxgcl.errors import UserError
from muxgcl.io.schema import fields, plain, table_of, whole
from muxgcl.runs.plan import Plan

FACT = "sample"
EXACT = "all nodes"  # where nothing is sampled; older studies, which never sample, do not say it


@dataclass(frozen=True, slots=True)
class Sample:
    """How many nodes a step contrasts with how many (None: all), and the settings that suit it."""

    anchors: int | None = None
    negatives: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def between(cls, asked: Plan, found: Plan) -> Self:
        """The sample of `found`, with the settings in which it differs from `asked`."""
        before, after = asdict(asked.settings), asdict(found.settings)
        changes = {key: value for key, value in after.items() if value != before[key]}
        return cls(found.anchors, found.keys, changes)

    @classmethod
    def from_facts(cls, facts: Mapping[str, str], place: str) -> Self:
        """What a study was begun with."""
        if (words := facts.get(FACT, EXACT)) == EXACT:
            return cls()
        place = f"{place}: {FACT}"
        try:
            found = json.loads(words)
        except (ValueError, RecursionError):
            raise UserError(f"{place} is not JSON") from None
        known = {"anchors": _size, "negatives": _size, "settings": table_of(plain)}
        fields(known, *known)(found, place)
        return cls(*(found[name] for name in known))

    @property
    def is_exact(self) -> bool:
        """Whether all nodes are contrasted with all nodes."""
        return self.anchors is None and self.negatives is None

    def to_fact(self) -> str:
        """For a study."""
        return EXACT if self.is_exact else json.dumps(asdict(self))

    def to_list(self) -> list[int]:
        """For a file of settings: 0 stands for all nodes."""
        return [self.anchors or 0, self.negatives or 0]


def _size(value: Any, place: str) -> None:
    if value is not None:
        whole(1)(value, place)
