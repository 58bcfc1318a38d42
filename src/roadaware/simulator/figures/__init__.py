"""Meshes of everything that moves except people, and of traffic lights."""

from roadaware.simulator.figures.form import rotate_mesh_hue as rotate_mesh_hue
from roadaware.simulator.figures.models import MODELS as MODELS
from roadaware.simulator.figures.models import Model as Model
from roadaware.simulator.figures.models import build_actor_mesh as build_actor_mesh
from roadaware.simulator.figures.models import build_signal_mesh as build_signal_mesh
from roadaware.simulator.figures.models import build_signal_soup as build_signal_soup
from roadaware.simulator.figures.models import sample_model_size as sample_model_size
