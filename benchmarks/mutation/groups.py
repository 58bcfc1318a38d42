"""Which modules are tried together, and which tests guard them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Group:
    """Modules that share tests.

    Args:
        modules: names below `roadaware.`.
        tests: files and folders below `tests/`; of them each change runs those that enter its function.
    """

    modules: tuple[str, ...]
    tests: tuple[str, ...]


def _below(package: str, names: str) -> tuple[str, ...]:
    return tuple(f"{package}.{name}" for name in names.split())


def _files(folder: str, names: str) -> tuple[str, ...]:
    return tuple(f"{folder}/test_{name}.py" for name in names.split())


_EXAMPLES = "test_docstring_examples.py"
_DETECTION = (
    *_files("metrics/detection", "av_action calibration errors evaluate_events frame ignored_tubes"),
    *_files("metrics/detection", "matches sizes slices summary thresholds video video_matches"),
)
GROUPS = {
    "intervals": Group(
        _below("statistics", "intervals cautions classification conformal coverage"),
        ("statistics", _EXAMPLES),
    ),
    "precision": Group(
        _below(
            "statistics", "average_precision average_precision_kernels comparison calibration distributions"
        ),
        ("statistics", _EXAMPLES, "metrics/test_path_metrics.py"),  # which judges mixtures in the plane
    ),
    "calibration": Group(
        ("statistics.calibration", "metrics.calibration"),
        (
            "statistics",
            _EXAMPLES,
            "metrics/test_pedestrian_calibration.py",
            "metrics/test_conformal_sets.py",
            "metrics/test_sample_scores.py",
        ),
    ),
    "pedestrians": Group(
        _below("metrics", "pedestrians multi_seed scores metric_state"),
        (
            _EXAMPLES,
            "metrics/test_pedestrian_calibration.py",
            "metrics/test_pedestrian_config.py",
            "metrics/test_pedestrian_edges.py",
            "metrics/test_pedestrian_fits.py",
            "metrics/test_pedestrian_metrics.py",
            "metrics/test_per_pedestrian.py",
            "metrics/test_sample_scores.py",
            "metrics/test_evaluate_tables.py",
            "metrics/test_item_scores.py",
            "metrics/test_judged.py",
        ),
    ),
    "tracking": Group(_below("metrics", "tracking tracking_pairs"), ("metrics/tracking",)),
    "detection": Group(
        _below("metrics.detection", "calibration evaluate kernels matches rows"),
        (*_DETECTION, _EXAMPLES),
    ),
    "actions": Group(_below("metrics", "actions action_kernels"), ("metrics/actions",)),
    "relations": Group(
        _below("metrics", "relations relation_kernels"),
        ("metrics/relations",),
    ),
    "grounding": Group(("metrics.grounding",), ("metrics/grounding",)),
    "sound": Group(
        _below("metrics", "sound sound_kernels"),
        _files("metrics/sound", "sound sound_page"),
    ),
    "corner_cases": Group(
        _below("metrics.corner_cases", "kernels matching evaluate"),
        ("metrics/corner_cases",),
    ),
}
"""Each is held to 95 in 100 by the slow tests."""
