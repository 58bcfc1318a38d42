"""Truth: what is seen of an episode, and everything that is true of it, as tables."""

from roadaware.scenes.simulator.truth.blocks import blocks_seen
from roadaware.scenes.simulator.truth.counts import statistics
from roadaware.scenes.simulator.truth.seen import Seen, SeenCollector
from roadaware.scenes.simulator.truth.sensing import Sweep
from roadaware.scenes.simulator.truth.tables import scene_tables

__all__ = ["Seen", "SeenCollector", "Sweep", "blocks_seen", "scene_tables", "statistics"]
