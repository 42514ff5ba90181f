"""A share of the jobs for each of several machines: `--shard 2/8` is the second of eight.

Jobs that come from one training stay together. The shares depend on the list of all jobs alone,
never on what is recorded already, so machines may come, die and come back: nothing is left out and
nothing is done twice. Each machine has its own folder of records; records of all folders together
are those of one machine.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from muxgcl.errors import UserError
from muxgcl.reproduce.artefacts import trainings
from muxgcl.reproduce.job import Job


@dataclass(frozen=True, slots=True)
class Share:
    """One of several shares, counted from 1."""

    number: int
    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            raise UserError(
                f"a shard is i/n with i from 1 to n, such as 1/4, got {self.number}/{self.count}"
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `i/n`."""
        if not (found := re.fullmatch(r"(\d+)/(\d+)", text.strip(), re.ASCII)):
            raise UserError(f"a shard is i/n with i from 1 to n, such as 1/4, got {text!r}")
        return cls(int(found[1]), int(found[2]))

    def of(self, jobs: Sequence[Job]) -> list[Job]:
        """The jobs of this share: every n-th training, so that shares are alike."""
        groups = trainings(jobs)[self.number - 1 :: self.count]
        return [job for group in groups for job in group]
