"""What predictors of pedestrians look at, made from scenes with samples: one module per modality."""

from __future__ import annotations

from roadaware.tasks.crossing_inputs.catalogue import inputs, known_inputs, needs
from roadaware.tasks.crossing_inputs.footage import CropConfig, Media

__all__ = ["CropConfig", "Media", "inputs", "known_inputs", "needs"]
