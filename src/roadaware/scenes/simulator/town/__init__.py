"""The town: its layout, what lies where on its ground, and its triangles."""

from roadaware.scenes.simulator.town.layouts import make_layout
from roadaware.scenes.simulator.town.regions import On, Regions, Where
from roadaware.scenes.simulator.town.scenery import Town, town_lights

__all__ = ["On", "Regions", "Town", "Where", "make_layout", "town_lights"]
