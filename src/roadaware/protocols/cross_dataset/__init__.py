"""Cross-dataset evaluation: predictors trained on one set of pedestrians, tested on every other."""

from __future__ import annotations
