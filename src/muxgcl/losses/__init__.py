"""Objectives, each a module with its formula and paper.

Methods call these; sums over all pairs of nodes are left to `kernels`.
"""
