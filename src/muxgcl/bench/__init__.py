"""Speed and memory, all backends in one process: `muxgcl bench kernels`, `epoch` and `methods`."""
