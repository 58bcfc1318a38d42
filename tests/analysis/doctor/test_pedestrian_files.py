"""A mistake planted in scores or samples of pedestrians is named and undone; sound files and weak models are left alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roadaware.analysis.corrected_scores import correct_sample_files
from roadaware.cli import main

PEOPLE, EACH = 24, 7
TRUTH = np.repeat(np.arange(PEOPLE) % 3 == 0, EACH).astype(int)


def make_scores(seed: int = 0, *, skill: float = 1.5) -> np.ndarray:
    """Logits of crossing, alike for the samples of one pedestrian."""
    rng = np.random.default_rng(seed)
    base = np.repeat(rng.normal(0, 1, PEOPLE), EACH)
    return base + skill * (2 * TRUTH - 1) + rng.normal(0, 0.1, len(TRUTH))


def write(folder: Path, values: np.ndarray, truth: Any = TRUTH, tte: Any = None) -> tuple[Path, Path]:
    tte = np.tile(np.arange(90, 29, -10), PEOPLE) if tte is None else tte
    values = values[:, None] if values.ndim == 1 else values
    scores, samples = folder / "scores.csv", folder / "samples.csv"
    scores.write_text("".join(",".join(f"{x:.9g}" for x in row) + "\n" for row in values))
    rows = [
        f"{t},p{n // EACH},{time:g},v{n // EACH % 4},x\n"
        for n, (t, time) in enumerate(zip(truth, tte, strict=True))
    ]
    samples.write_text("truth,pedestrian,tte_frames,video,weather\n" + "".join(rows))
    return scores, samples


def sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-values))


Plant = Callable[[np.ndarray], dict[str, Any]]
PLANTED: dict[str, tuple[str, Plant]] = {
    "logits": ("logits", lambda logit: {"values": logit}),
    "per cent": ("percent", lambda logit: {"values": 100 * sigmoid(logit)}),
    "both classes": ("column_count", lambda logit: {"values": np.stack([1 - sigmoid(logit), sigmoid(logit)], 1)}),
    "logits of both": ("column_count", lambda logit: {"values": np.stack([-logit / 2, logit / 2], 1)}),
    "not crossing": ("reversed", lambda logit: {"values": 1 - sigmoid(logit)}),
    "classes from 1": ("truth_base", lambda logit: {"values": sigmoid(logit), "truth": TRUTH + 1}),
    "seconds": ("tte_seconds", lambda logit: {"values": sigmoid(logit), "tte": np.tile(np.arange(90, 29, -10), PEOPLE) / 30}),
}  # fmt: skip


@pytest.mark.parametrize("name", list(PLANTED))
def test_a_planted_mistake_is_named_and_undone(name: str, tmp_path: Path) -> None:
    code, plant = PLANTED[name]
    (tmp_path / "clean").mkdir()
    clean = correct_sample_files(*write(tmp_path / "clean", sigmoid(make_scores())), "action")
    assert clean.findings == ()
    assert clean.before is not None
    found = correct_sample_files(*write(tmp_path, **plant(make_scores())), "action", output=tmp_path / "out")
    assert [each.code for each in found.findings] == [code]
    assert found.after == pytest.approx(clean.before, abs=1e-9)
    assert found.before is None or found.before < clean.before
    again = correct_sample_files(tmp_path / "out/scores.csv", tmp_path / "out/samples.csv", "action")
    assert again.findings == ()
    assert again.before == found.after
    assert (
        (tmp_path / "out/samples.csv").read_text().startswith("truth,pedestrian,tte_frames,video,weather\n")
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_model_that_knows_nothing_is_not_corrected(seed: int, tmp_path: Path) -> None:
    found = correct_sample_files(*write(tmp_path, sigmoid(make_scores(seed, skill=0.0))), "action")
    assert not found.corrected
    assert found.after is None


def test_columns_of_classes_in_another_order_are_put_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(PEOPLE) % 3, EACH)
    logits = 2 * np.eye(3)[truth] + np.repeat(rng.normal(0, 0.5, (PEOPLE, 3)), EACH, axis=0)
    values = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    clean = correct_sample_files(*write(tmp_path, values, truth), "intention")
    found = correct_sample_files(*write(tmp_path, np.roll(values, 1, axis=1), truth), "intention")
    assert [each.code for each in found.findings] == ["class_order"]
    assert found.before is not None
    assert clean.before is not None
    assert found.before < found.after == clean.before  # type: ignore[operator]


def test_the_command_says_what_corrected_files_score(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores, samples = write(tmp_path, make_scores())
    given = ["doctor", "pedestrians", "--scores", str(scores), "--samples", str(samples)]
    assert main([*given, "-o", str(tmp_path / "out")]) == 0
    told = capsys.readouterr().out
    assert "auc as written: none" in told
    assert "auc corrected:" in told
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["samples.csv", "scores.csv"]
    # What stands there is not replaced.
    assert main([*given, "-o", str(tmp_path / "out")]) == 2
