"""Predictions and annotations of others, in and out."""

from __future__ import annotations
