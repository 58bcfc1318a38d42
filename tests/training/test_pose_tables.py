"""The command `poses`: joints of people alone, in a table that predictors read, resumed and refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from made_films import FRAMES, made_folder, made_scenes

from roadaware.cli import main
from roadaware.errors import InputError
from roadaware.models.graphs.movenet import PoseReader
from roadaware.scenes.store import save
from roadaware.scenes.tables import Predictions
from roadaware.tasks.crossing_inputs.pose import read_poses
from roadaware.tasks.poses import people_in
from tiny_poses import JOINTS, save_tiny_poses


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = made_folder(tmp_path_factory.mktemp("poses"))
    save_tiny_poses(folder / "tiny.safetensors")
    return folder


def _asked(made: Path, out: Path, *more: str) -> list[str]:
    where = ["--videos", str(made / "tables"), "--media", str(made / "films")]
    return ["poses", str(made / "tiny.safetensors"), *where, "--out", str(out), *more]


def test_the_people_of_a_set_get_joints_that_predictors_read(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(_asked(made, tmp_path, "--threshold", "0", "--draw", "1")) == 0
    found = read_poses(tmp_path / "poses.parquet")
    assert found.pixels
    assert found.values.shape == (2 * FRAMES, 3 * len(JOINTS))
    assert found.name == ["1"] * FRAMES + ["3"] * FRAMES
    assert found.video == ["film-0"] * FRAMES + ["film-1"] * FRAMES
    assert found.frame.tolist() == [*range(FRAMES), *range(FRAMES)]
    assert (tmp_path / "0000-film-0-000000.png").stat().st_size > 100
    first = (tmp_path / "poses.parquet").read_bytes()

    def gone(*given: object) -> None:
        raise AssertionError("joints that are kept are not looked for again")

    monkeypatch.setattr(PoseReader, "read", gone)
    assert main(_asked(made, tmp_path, "--threshold", "0")) == 0
    assert (tmp_path / "poses.parquet").read_bytes() == first


def test_joints_that_are_hardly_seen_stand_at_zero(made: Path, tmp_path: Path) -> None:
    assert main(_asked(made, tmp_path, "--threshold", "1")) == 0
    assert not np.any(read_poses(tmp_path / "poses.parquet").values)
    assert main(_asked(made, tmp_path, "--threshold", "0.5")) == 2  # the folder holds others


def test_a_run_that_was_stopped_goes_on(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(_asked(made, tmp_path / "whole")) == 0
    read, seen = PoseReader.read, []

    def stopped(self: PoseReader, *given: object) -> object:
        seen.append(1)
        if len(seen) == FRAMES + 3:
            raise KeyboardInterrupt
        return read(self, *given)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(PoseReader, "read", stopped)
        assert main(_asked(made, tmp_path / "parts")) == 130
    assert (tmp_path / "parts" / "parts" / "film-0.parquet").is_file()
    assert not (tmp_path / "parts" / "poses.parquet").exists()
    assert main(_asked(made, tmp_path / "parts")) == 0
    whole, parts = (pl.read_parquet(tmp_path / name / "poses.parquet") for name in ("whole", "parts"))
    assert whole.equals(parts)


@pytest.mark.slow
@pytest.mark.parametrize("on", ["local", "ray://local"])
def test_two_workers_make_the_bytes_of_one(made: Path, tmp_path: Path, on: str) -> None:
    if on != "local":
        pytest.importorskip("ray")
    assert main(_asked(made, tmp_path / "one")) == 0
    assert main(_asked(made, tmp_path / "two", "--processes", "2", "--on", on)) == 0
    one, two = (
        {str(path.relative_to(tmp_path / name)): path.read_bytes() for path in (tmp_path / name).rglob("*.*")}
        for name in ("one", "two")
    )
    assert one == two
    assert set(one) >= {"poses.json", "poses.parquet", "parts/film-0.parquet", "parts/film-1.parquet"}
    assert "progress.json" not in one


def test_a_video_that_fails_leaves_the_others(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read, seen = PoseReader.read, []

    def fail(self: PoseReader, *given: object) -> object:
        seen.append(1)
        if len(seen) == 1:
            raise InputError("damaged", where="film-0")
        return read(self, *given)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(PoseReader, "read", fail)
        assert main(_asked(made, tmp_path / "out")) == 1
    assert "1 of 2 videos failed" in capsys.readouterr().err
    assert (tmp_path / "out/parts/film-1.parquet").is_file()
    assert main(_asked(made, tmp_path / "out")) == 0
    assert main(_asked(made, tmp_path / "whole")) == 0
    assert (tmp_path / "out/poses.parquet").read_bytes() == (tmp_path / "whole/poses.parquet").read_bytes()


def test_what_has_no_people_is_refused(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    film = str(made / "films" / "film-0.mp4")
    model = str(made / "tiny.safetensors")
    assert main(["poses", model, "--videos", film, "--out", str(tmp_path / "a")]) == 2
    assert "--boxes names tables" in capsys.readouterr().err
    predictions, other = _predictions(), pl.lit("another")
    tables = {
        name: getattr(predictions, name).with_columns(video=other) for name in ("videos", "tubes", "boxes")
    }
    save(predictions.with_tables(**tables), tmp_path / "predictions")
    asked = [
        "poses",
        model,
        "--videos",
        film,
        "--boxes",
        str(tmp_path / "predictions"),
        "--out",
        str(tmp_path),
    ]
    assert main([*asked[:-1], str(tmp_path / "b")]) == 3
    assert "the boxes are of another" in capsys.readouterr().err


def _predictions() -> Predictions:
    """A weak person without a tube, a sure one without, one with a tube, and a car."""
    scenes = made_scenes(1)
    corners = {f"{c}_px": pl.Series([1.0] * 4, dtype=pl.Float32) for c in ("x1", "y1")}
    corners |= {f"{c}_px": pl.Series([9.0] * 4, dtype=pl.Float32) for c in ("x2", "y2")}
    boxes = {"box": range(4), "video": ["film-0"] * 4, "frame": [0] * 4, "tube": [None, None, 0, 0]}
    labels = {"box": range(4), "kind": ["agent"] * 4, "label": [0, 0, 0, 1]}
    return Predictions(
        videos=scenes.videos,
        tubes=pl.DataFrame({"tube": [0], "video": ["film-0"]}),
        boxes=pl.DataFrame({**boxes, **corners, "score": [0.1, 0.9, 0.2, 0.9]}),
        labels=pl.DataFrame(labels),
        meta=scenes.meta,
    )


def test_of_predictions_those_with_tubes_count_and_else_those_that_are_sure() -> None:
    predictions = _predictions()
    assert people_in(predictions)["name"].to_list() == ["0"]
    loose = predictions.with_tables(boxes=predictions.boxes.with_columns(tube=pl.lit(None, pl.Int64)))
    assert people_in(loose)["name"].to_list() == ["box1"]
    nobody = predictions.with_tables(labels=predictions.labels.with_columns(label=pl.lit(1)))
    with pytest.raises(InputError, match="none of 4 boxes is around a person"):
        people_in(nobody)
