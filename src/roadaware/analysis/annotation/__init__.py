"""Annotation of proposals: selection of images, outcomes of proposals, and agreement of annotators."""

from __future__ import annotations
