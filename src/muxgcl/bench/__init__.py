"""Speed and memory, all backends side by side in one process.

`contrast` times the kernels, `epoch` and `methods` whole epochs; `clock` measures. The command line
(`muxgcl bench`) and scripts in `benchmarks/` call these.
"""
