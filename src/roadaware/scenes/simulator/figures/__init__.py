"""Meshes of everything that moves except people, and of traffic lights."""

from roadaware.scenes.simulator.figures.colours import turned as turned
from roadaware.scenes.simulator.figures.models import MODELS as MODELS
from roadaware.scenes.simulator.figures.models import Model as Model
from roadaware.scenes.simulator.figures.models import sized as sized
from roadaware.scenes.simulator.figures.posing import mesh_of as mesh_of
from roadaware.scenes.simulator.figures.signals import signal_mesh as signal_mesh
from roadaware.scenes.simulator.figures.signals import signal_soup as signal_soup
