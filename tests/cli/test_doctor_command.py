"""`roadaware doctor` corrects a file of predictions, scores it before and after, and refuses what it cannot do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_files import Command

from roadaware.demo_data.corner_files import BASE, PROPOSALS, write_corner_demo


@pytest.fixture(scope="module")
def corner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("corner")
    write_corner_demo(root)
    results = json.loads((root / PROPOSALS).read_text())
    for row in results:
        left, top, width, height = row["bbox"]
        row["bbox"] = [left, top, left + width, top + height]
        row["score"] *= 100
    (root / "bad.json").write_text(json.dumps(results))
    return root


def test_a_corrected_file_is_written_and_both_are_scored(
    roadaware: Command, corner: Path, tmp_path: Path
) -> None:
    words = ["doctor", "corner-cases", "--truth", corner / BASE, "--predictions"]
    out = tmp_path / "good.json"
    done = roadaware(*words, corner / "bad.json", "--output", out, "--json")
    assert done.code == 0, done.err
    assert [item["code"] for item in done.data["diagnoses"]] == ["boxes", "percent"]
    clean = roadaware(*words, corner / PROPOSALS, "--json").data["score"]
    assert done.data["score"]["before"] == 0
    assert done.data["score"]["after"] == clean["before"] > 0.05
    assert roadaware(*words, out, "--json").data["diagnoses"] == []
    done = roadaware(*words, corner / "bad.json", "--strict")
    assert done.code == 1
    assert "corner_ar corrected:  0.05" in done.out
    done = roadaware(*words, corner / "bad.json", "--output", out)
    assert done.code == 2
    assert "--overwrite" in done.err


def test_what_cannot_be_corrected_is_refused(roadaware: Command, corner: Path, tmp_path: Path) -> None:
    truth = ["--truth", corner / BASE]
    (tmp_path / "text.json").write_text('[{"image_id": 1, "bbox": [1, 2, 3], "score": "much"}]')
    for words, code, says in (
        (["doctor", "corner-cases", *truth], 2, "needs --truth TRUTH and --predictions"),
        (["doctor", "road"], 2, "or the path of the dataset: doctor road PATH"),
        (["doctor", "sound", "--output", tmp_path / "x"], 2, "needs --truth TRUTH and --predictions"),
        (["doctor", "corner-cases", *truth, "--predictions", tmp_path], 2, "is a folder"),
        (["doctor", "corner-cases", *truth, "--predictions", corner / BASE], 3, "expected a list"),
        (["doctor", "corner-cases", *truth, "--predictions", tmp_path / "text.json"], 3, "four numbers"),
        (["doctor", "corner-cases", *truth, "--predictions", tmp_path / "none.json"], 3, "none.json"),
    ):
        done = roadaware(*words)
        assert (done.code, says in done.err) == (code, True), done.err
