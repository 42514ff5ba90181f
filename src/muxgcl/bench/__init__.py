"""Speed and memory, always as ratios within one run: `muxgcl bench kernels` and `bench epoch`."""
