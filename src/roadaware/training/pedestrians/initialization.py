"""Initial weights of a fit: published image weights, or a predictor of ours; imports torch."""

from __future__ import annotations

from pathlib import Path

from roadaware import config as configs
from roadaware.errors import UsageError
from roadaware.models.crossing.networks.base import CrossingNet
from roadaware.models.crossing.predictor import Predictor, is_predictor
from roadaware.models.crossing.published import load_image_weights


def load_initial_weights(network: CrossingNet, name: str, path: Path) -> None:
    """Put weights into a network before it is trained.

    Of a predictor everything is taken, its last layer too; only what its answers were drawn from is not. How
    its sequences were standardised is taken as well, and a recipe that standardises replaces it.

    Args:
        network: is changed.
        name: of it in the registry.
        path: a predictor's file, or a file of image weights as `load_image_weights` takes it.

    Raises:
        UsageError: if there is no such file, or the weights are of another network, or of one with other
            inputs, sizes or labels.
        InputError: if the file cannot be read.
        DamagedError: if it is not whole.
    """
    if not path.is_file():
        raise UsageError(f"network.weights: there is no file {path}")
    if not is_predictor(path):
        load_image_weights(network, path)
        return
    held = Predictor.open(path)
    for what, there, here in (
        ("network", held.name, name),
        ("inputs", _shapes(held.network), _shapes(network)),
        ("number of labels", held.network.labels, network.labels),
        ("sizes", configs.to_dict(held.network.config), configs.to_dict(network.config)),
    ):
        if there != here:
            raise UsageError(f"{path} cannot be gone on from: its {what} is {there}, and the recipe's {here}")
    own = network.state_dict()
    known = {key: value for key, value in held.network.state_dict().items() if key in own}
    network.load_state_dict({**own, **known})


def _shapes(network: CrossingNet) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in network.shapes.items())
