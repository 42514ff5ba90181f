"""Work that is repeated: how often, and who is told. The GPU's part is in tests/gpu."""

import pytest
import torch

from muxgcl.kernels.capture import repeat


@pytest.mark.parametrize("times", [0, 1, 2, 3, 7])
def test_the_work_is_done_as_often_as_asked(times: int) -> None:
    done: list[int] = []
    told: list[int] = []
    repeat(lambda: done.append(1), times, torch.device("cpu"), told.append)
    assert len(done) == times
    assert told == list(range(1, times + 1))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("times", [0, 1, 2, 3, 7])
def test_on_a_gpu_it_is_played_back_with_fresh_numbers(times: int) -> None:
    device = torch.device("cuda")
    count, drawn = torch.zeros((), device=device), torch.zeros(8, device=device)
    seen: list[torch.Tensor] = []

    def work() -> None:
        count.add_(1)
        drawn.copy_(torch.rand(8, device=device))

    repeat(work, times, device, lambda done: seen.append(drawn.clone()))
    assert int(count) == times
    assert len({tuple(values.tolist()) for values in seen}) == times
