"""Uncertainty: wrappers that give any network for pedestrians predictive uncertainty."""

from __future__ import annotations
