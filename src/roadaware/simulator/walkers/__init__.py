"""Walkers: people on foot who walk, wait, look, decide and cross."""

from roadaware.simulator.walkers.crowd import Walkers

__all__ = ["Walkers"]
