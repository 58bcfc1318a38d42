"""Chaos: crowds that fight, protest, quarrel, flee and loot, with their relations."""

from roadaware.simulator.chaos.making import CATEGORIES as CATEGORIES
from roadaware.simulator.chaos.making import make_chaos as make_chaos
