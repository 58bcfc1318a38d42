"""The town: its layout, what lies where on its ground, and its triangles."""

from roadaware.simulator.town.regions import On, Regions, Where
from roadaware.simulator.town.scenery import Town, collect_street_lamps, make_layout

__all__ = ["On", "Regions", "Town", "Where", "collect_street_lamps", "make_layout"]
