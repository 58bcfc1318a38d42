"""Truth: what is seen of an episode, and everything that is true of it, as tables."""

from roadaware.simulator.truth.labels import statistics
from roadaware.simulator.truth.seen import Seen, SeenCollector, blocks_seen
from roadaware.simulator.truth.tables import Sweep, scene_tables

__all__ = ["Seen", "SeenCollector", "Sweep", "blocks_seen", "scene_tables", "statistics"]
