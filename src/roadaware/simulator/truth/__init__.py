"""Ground truth: visibility and labels of an episode as tables."""

from roadaware.simulator.truth.labels import count_labels
from roadaware.simulator.truth.seen import Seen, SeenCollector, simulate_block_view
from roadaware.simulator.truth.tables import Sweep, build_scene_tables

__all__ = ["Seen", "SeenCollector", "Sweep", "build_scene_tables", "count_labels", "simulate_block_view"]
