"""The registry of models: names and where they are built, nothing else, so that naming them loads nothing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from roadaware.errors import UsageError

if TYPE_CHECKING:
    from roadaware.models.card import ModelCard
    from roadaware.models.crossing.tabular import TabularModel

MODELS: dict[str, str] = {
    "logistic": "roadaware.models.crossing.logistic:Logistic",
    "boosting": "roadaware.models.crossing.boosting:Boosting",
    "constant-velocity": "roadaware.models.crossing.constant_velocity:ConstantVelocity",
}


def model_class(name: str) -> type[TabularModel]:
    """The class behind a name.

    Raises:
        UsageError: if no model has that name.
    """
    if name not in MODELS:
        raise UsageError(f"no model is called '{name}'; there are {', '.join(MODELS)}")
    module, _, attribute = MODELS[name].partition(":")
    found: type[TabularModel] = getattr(import_module(module), attribute)
    return found


def create(name: str, **config: Any) -> TabularModel:
    """An unfitted model from its name and the fields of its config.

    Raises:
        UsageError: if the name or a field of the config is unknown.
    """
    return model_class(name).create(**config)


def cards() -> dict[str, ModelCard]:
    """The card of every model, in the order of the registry."""
    return {name: model_class(name).card for name in MODELS}
