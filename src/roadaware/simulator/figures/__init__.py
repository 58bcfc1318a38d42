"""Meshes of everything that moves except people, and of traffic lights."""

from roadaware.simulator.figures.form import turned as turned
from roadaware.simulator.figures.models import MODELS as MODELS
from roadaware.simulator.figures.models import Model as Model
from roadaware.simulator.figures.models import mesh_of as mesh_of
from roadaware.simulator.figures.models import signal_mesh as signal_mesh
from roadaware.simulator.figures.models import signal_soup as signal_soup
from roadaware.simulator.figures.models import sized as sized
