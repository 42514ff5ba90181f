"""Speed and memory, always as ratios within one run: `muxgcl bench kernels` and `bench epoch`."""

from muxgcl.bench.epoch import bench_epoch
from muxgcl.bench.kernels import bench_kernels

__all__ = ["bench_epoch", "bench_kernels"]
