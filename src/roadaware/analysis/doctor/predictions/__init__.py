"""Why predictions about scenes score 0: names, frames, images, labels and maps that do not fit the ground truth."""

from __future__ import annotations

from roadaware.analysis.doctor.predictions.tasks import TASKS, check_predictions

__all__ = ["TASKS", "check_predictions"]
