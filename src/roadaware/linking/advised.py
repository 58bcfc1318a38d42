"""A linker's config with what a detector advises in its place."""

from __future__ import annotations

from roadaware.config import from_dict, to_dict
from roadaware.errors import DamagedError, UsageError
from roadaware.linking.config import LinkerConfig
from roadaware.scenes.advice import Advice

_LONGEST = 500


def apply_advice(config: LinkerConfig, advice: Advice) -> LinkerConfig:
    """A copy of a config with the fields that a detector advises.

    Args:
        config: where the detector says nothing.
        advice: of the detector; what several dispute is left as it is.

    Raises:
        DamagedError: if a field is unknown to the linker or its value has no meaning.

    >>> apply_advice(LinkerConfig.default(), Advice({"min_iou": 0.1})).min_iou
    0.1
    """
    try:
        return from_dict(LinkerConfig, {**to_dict(config), **advice.linking})
    except UsageError as error:
        why = str(error)[:_LONGEST]  # names and values come from a file
        raise DamagedError(f"what the detector advises on linking fits no linker: {why}") from error
