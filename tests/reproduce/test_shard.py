"""Shares of a reproduction for several machines."""

import pytest

from muxgcl.errors import UserError
from muxgcl.reproduce.artefacts import trainings
from muxgcl.reproduce.job import Job
from muxgcl.reproduce.shard import Share

JOBS = [
    Job(method=method, dataset=dataset, protocol=protocol, seed=seed, splits=3)
    for method in ("grace", "dgi")
    for dataset in ("cora", "citeseer")
    for seed in range(3)
    for protocol in ("holdout", "paper")
]


@pytest.mark.parametrize("count", [1, 2, 5, 30])
def test_shares_leave_nothing_out_and_do_nothing_twice(count: int) -> None:
    shares = [Share(number, count).of(JOBS) for number in range(1, count + 1)]
    assert sorted((job for share in shares for job in share), key=JOBS.index) == JOBS
    sizes = [len(trainings(share)) for share in shares]
    assert max(sizes) - min(sizes) <= 1


def test_jobs_of_one_training_stay_together() -> None:
    for number in (1, 2, 3):
        share = Share(number, 3).of(JOBS)
        assert all(group in trainings(JOBS) for group in trainings(share))


def test_one_of_one_is_everything() -> None:
    assert sorted(Share.parse("1/1").of(JOBS), key=JOBS.index) == JOBS


@pytest.mark.parametrize("text", ["0/4", "5/4", "1/0", "1", "a/b", "1/2/3", "-1/2", ""])
def test_a_wrong_shard_is_told_with_what_came(text: str) -> None:
    with pytest.raises(UserError, match="a shard is i/n with i from 1 to n"):
        Share.parse(text)
