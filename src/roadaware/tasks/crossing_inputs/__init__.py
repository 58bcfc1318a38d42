"""Inputs of pedestrian predictors, built from scenes with samples."""

from __future__ import annotations

from roadaware.tasks.crossing_inputs.catalogue import build_inputs, describe_requirements, list_inputs
from roadaware.tasks.crossing_inputs.footage import CropConfig, Media

__all__ = ["CropConfig", "Media", "build_inputs", "describe_requirements", "list_inputs"]
