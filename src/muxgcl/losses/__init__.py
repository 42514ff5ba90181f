"""Objectives, each a module with its formula and paper."""
