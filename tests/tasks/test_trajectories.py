"""Windows are cut as they were annotated; motion models equal plain ones; networks of paths learn, and the study runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.metrics.trajectories import TrajectoryConfig, judge_paths
from roadaware.models.trajectory.mixture import (
    MixtureConfig,
    MixtureNetwork,
    PathPredictor,
    as_tensors,
    mixture_loss,
)
from roadaware.models.trajectory.motion import Extrapolation, Kalman, States, extrapolate, filter_states
from roadaware.protocols.trajectories import (
    FLOORS,
    MIXTURE,
    SINGLE,
    _Part,
    _Work,
    deal_folds,
    run_trajectory_study,
)
from roadaware.reports.page import report
from roadaware.reports.trajectories import build_trajectory_section, decide, format_trajectory_study
from roadaware.scenes.tables import Meta, Scenes
from roadaware.tasks.trajectories import (
    WindowProtocol,
    Windows,
    cut_windows,
    get_future,
    get_paths,
    get_states,
    place_forecast,
)
from roadaware.training.pedestrians.trajectories import PathRecipe, fit_paths

torch.set_num_threads(1)


def tracks(
    videos: int = 9, frames: int = 90, fps: float = 30.0, *, drop: tuple[int, ...] = (), dataset: str = "JAAD"
) -> Scenes:
    """In each video one who speeds up to the right and one who stands, and a group; splits in turn."""
    rows, tubes, names = [], [], [f"video_{n:04d}" for n in range(videos)]
    rng = np.random.default_rng(0)
    for place, video in enumerate(names):
        for who, label in (("a", "pedestrian"), ("b", "ped"), ("g", "people")):
            tubes.append((len(tubes), video, who, label))
            for frame in range(frames):
                if frame in drop and who == "a":
                    continue
                t = frame / fps
                x = 300 + (40 + 5 * place) * t * t if who == "a" else 900.0
                x, y = x + rng.normal(0, 0.3), 500 + rng.normal(0, 0.3)
                rows.append(
                    (len(rows), video, frame, len(tubes) - 1, x - 20, y - 50, x + 20, y + 50, 3 + t, 12 - t)
                )
    columns = ["box", "video", "frame", "tube", "x1_px", "y1_px", "x2_px", "y2_px", "x_m", "z_m"]
    parts = ["train", "val", "test"]
    return Scenes(
        videos=pl.DataFrame(
            {
                "video": names, "fps": [fps] * videos, "width_px": [1920] * videos, "height_px": [1080] * videos,
                "splits": [[f"default/{parts[n % 3]}"] for n in range(videos)],
            }
        ),
        boxes=pl.DataFrame(rows, schema=columns, orient="row"),
        tubes=pl.DataFrame(tubes, schema=["tube", "video", "name", "track_label"], orient="row"),
        meta=Meta(dataset),
    )  # fmt: skip


def test_windows_are_boxes_as_they_stand() -> None:
    scenes = tracks(1)
    found = cut_windows(scenes, WindowProtocol())
    assert (found.past.shape, found.future.shape, found.people) == ((6, 15, 4), (6, 45, 4), 2)
    assert found.left_out["groups of people"] == 1
    assert found.frame.tolist() == [14, 29, 44, 14, 29, 44]
    own = (
        scenes.boxes.filter(pl.col("tube") == 0)
        .sort("frame")
        .select("x1_px", "y1_px", "x2_px", "y2_px")
        .to_numpy()
    )
    assert np.array_equal(found.past[1], own[15:30])
    assert np.array_equal(found.future[1], own[30:75])
    # Every third box, and nothing in between.
    slow = cut_windows(scenes, WindowProtocol(rate_fps=10.0))
    assert (slow.past.shape, slow.future.shape) == ((6, 5, 4), (6, 15, 4))
    assert np.array_equal(slow.past[0], own[0:13:3])
    assert np.array_equal(slow.future[0], own[15:58:3])
    assert slow.step_s == pytest.approx(0.1)


def test_holes_part_a_track_and_short_tracks_are_counted() -> None:
    found = cut_windows(tracks(1, drop=(40,)), WindowProtocol())
    assert set(found.name.tolist()) == {"b"}
    assert found.left_out["holes"] == 1
    assert found.left_out["tracks of which no stretch is long enough"] == 1
    alone = cut_windows(tracks(1, drop=tuple(range(1, 90))), WindowProtocol())
    assert alone.left_out["tracks of one box"] == 1
    with pytest.raises(InputError, match="without a hole"):
        cut_windows(tracks(1, frames=30), WindowProtocol())
    flat = tracks(1)
    flat = flat.with_tables(
        boxes=flat.boxes.with_columns(x2_px=pl.when(pl.col("frame") == 45).then("x1_px").otherwise("x2_px"))
    )
    with pytest.raises(InputError, match="boxes without an extent or place"):
        cut_windows(flat, WindowProtocol())


@pytest.mark.parametrize(
    ("protocol", "words"),
    [(WindowProtocol(rate_fps=12.5), "no multiple"), (WindowProtocol(rate_fps=60.0), "no multiple"),
     (WindowProtocol(observe_s=0.03), "two are observed")],
)  # fmt: skip
def test_rates_that_would_have_boxes_filled_in_are_refused(protocol: WindowProtocol, words: str) -> None:
    with pytest.raises((InputError, UsageError), match=words):
        cut_windows(tracks(1), protocol)
    with pytest.raises(UsageError, match="above 0"):
        WindowProtocol(predict_s=0.0)
    unknown = tracks(1, dataset="other")
    with pytest.raises(InputError, match="frame rate"):
        cut_windows(unknown.with_tables(videos=unknown.videos.drop("fps")), WindowProtocol())
    with pytest.raises(InputError, match="x_m, z_m"):
        cut_windows(unknown.with_tables(boxes=unknown.boxes.drop("x_m", "z_m")), WindowProtocol(ground=True))


def test_a_forecast_that_is_what_came_errs_by_nothing() -> None:
    windows = cut_windows(tracks(2), WindowProtocol())
    future = get_future(windows)
    from roadaware.models.trajectory.motion import StateForecast

    n, m, _ = future.shape
    right = StateForecast(np.ones((n, 1)), future[:, None], np.full((n, 1, m, 4), 0.1), np.zeros((n, 1, m)))
    table = judge_paths(place_forecast(right, windows), get_paths(windows)).table
    assert table["ade"].to_numpy() == pytest.approx(0, abs=1e-9)
    assert table["iou"].to_numpy() == pytest.approx(1)
    assert table["nll"].to_numpy() == pytest.approx(np.log(2 * np.pi * 0.1**2))
    ground = cut_windows(tracks(2), WindowProtocol(ground=True))
    flat = StateForecast(
        np.ones((n, 1)), get_future(ground)[:, None], np.full((n, 1, m, 2), 0.1), np.zeros((n, 1, m))
    )
    assert judge_paths(place_forecast(flat, ground), get_paths(ground)).table[
        "fde"
    ].to_numpy() == pytest.approx(0, abs=1e-6)


def test_straight_lines_equal_plain_ones() -> None:
    rng = np.random.default_rng(0)
    past = np.cumsum(rng.normal(size=(5, 6, 2)), axis=1)
    states = States(past - past[:, -1:], np.zeros((5, 3)), 0.1)
    velocity, line = extrapolate(states, 4, "velocity", 3), extrapolate(states, 4, "line", 5)
    for i in range(5):
        for d in range(2):
            seen = states.past[i, :, d]
            assert velocity[i, :, d] == pytest.approx(
                [(seen[-1] - seen[-4]) / 3 * ahead for ahead in range(1, 5)]
            )
            slope, start = np.polyfit(np.arange(6), seen, 1)
            assert line[i, :, d] == pytest.approx([start + slope * (5 + ahead) for ahead in range(1, 5)])
    fitted = Extrapolation.fit("velocity", states, velocity, states, velocity)
    assert fitted.lookback in (1, 2, 5)
    with pytest.raises(UsageError, match="velocity or line"):
        Extrapolation.fit("curve", states, velocity, states, velocity)


def test_the_filter_equals_one_by_matrices() -> None:
    past = np.random.default_rng(1).normal(size=(1, 5, 1))
    dt, noise, push = 0.2, 0.3, 0.7
    move, seen = np.array([[1, dt], [0, 1]]), np.array([[1.0, 0.0]])
    grows = push**2 * np.array([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]])
    state, covariance = np.array([past[0, 0, 0], 0.0]), np.diag([noise**2, 100.0])
    for value in past[0, 1:, 0]:
        state, covariance = move @ state, move @ covariance @ move.T + grows
        gain = covariance @ seen.T @ np.linalg.inv(seen @ covariance @ seen.T + noise**2)
        state = state + (gain @ (value - seen @ state)).ravel()
        covariance = (np.eye(2) - gain @ seen) @ covariance
    mean, deviation = filter_states(past, dt, 3, noise, push)
    for step in range(3):
        state, covariance = move @ state, move @ covariance @ move.T + grows
        assert mean[0, step, 0] == pytest.approx(state[0])
        assert deviation[step] == pytest.approx(np.sqrt(covariance[0, 0] + noise**2))


def test_the_filter_finds_the_noise_that_moved_people() -> None:
    rng = np.random.default_rng(2)
    n, t, dt, noise, push = 3000, 20, 0.1, 0.04, 0.4
    state, whole = np.zeros((n, 2)), []
    state[:, 1] = rng.normal(size=n)
    grows = np.linalg.cholesky(push**2 * np.array([[dt**3 / 3, dt**2 / 2], [dt**2 / 2, dt]]))
    for _ in range(t):
        state = (
            np.stack([state[:, 0] + dt * state[:, 1], state[:, 1]], axis=1)
            + rng.normal(size=(n, 2)) @ grows.T
        )
        whole.append(state[:, 0] + rng.normal(0, noise, n))
    path = np.stack(whole, axis=1)[..., None].repeat(2, axis=2)
    found = Kalman.fit(States(path[:, :12], np.zeros((n, 3)), dt), path[:, 12:])
    assert (found.measurement, found.acceleration) == (noise, push)


def network(states: int = 4) -> MixtureNetwork:
    torch.manual_seed(0)
    return MixtureNetwork(MixtureConfig(5, 6, 0.1, states, components=3, hidden=16)).eval()


def test_the_loss_is_minus_the_log_density() -> None:
    rng = np.random.default_rng(0)
    states = States(rng.normal(size=(4, 5, 2)), rng.random((4, 3)), 0.1)
    future = rng.normal(size=(4, 6, 2))
    held = network(2)
    with torch.no_grad():
        loss = mixture_loss(held(*as_tensors(states)), torch.from_numpy(future.astype(np.float32)))
    forecast = PathPredictor(held, {}).forecast(states, 6)
    from roadaware.statistics.distributions import PlaneMixture

    density = PlaneMixture(
        forecast.weight, forecast.mean, forecast.deviation, forecast.correlation
    ).log_density(future)
    assert loss.numpy() == pytest.approx(-density.mean(axis=1), rel=1e-4)


def test_a_network_comes_back_from_its_file_and_others_are_refused(tmp_path: Path) -> None:
    states = States(np.random.default_rng(0).normal(size=(3, 5, 4)), np.zeros((3, 3)), 0.1)
    held = PathPredictor(network(), {"set": "x"})
    held.save(tmp_path / "net.safetensors")
    back = PathPredictor.open(tmp_path / "net.safetensors")
    assert np.array_equal(back.forecast(states, 6).mean, held.forecast(states, 6).mean)
    with pytest.raises(UsageError, match="predicts 6"):
        held.forecast(states, 7)
    with pytest.raises(UsageError, match=r"every 0.2 s"):
        held.forecast(States(states.past, states.position, 0.2), 6)
    with pytest.raises(InputError, match="found none"):
        PathPredictor.open(tmp_path / "no.safetensors")
    (tmp_path / "half.safetensors").write_bytes((tmp_path / "net.safetensors").read_bytes()[:500])
    with pytest.raises((DamagedError, InputError)):
        PathPredictor.open(tmp_path / "half.safetensors")
    with pytest.raises(UsageError, match="2 or 4 states"):
        MixtureConfig(states=3)
    with pytest.raises(InputError, match="two steps"):
        States(np.zeros((1, 1, 4)), np.zeros((1, 3)), 0.1)


QUICK = PathRecipe(components=2, hidden=24, updates=150, batch=32, lr=5e-3, checks=5, dropout=0.0)


def test_a_network_learns_what_no_straight_line_says() -> None:
    train, test = (
        cut_windows(tracks(9), WindowProtocol(rate_fps=10.0, stride_s=stride)) for stride in (0.1, 0.5)
    )
    net = fit_paths(get_states(train), get_future(train), get_states(test), get_future(test), QUICK, 0)
    again = fit_paths(get_states(train), get_future(train), get_states(test), get_future(test), QUICK, 0)
    line = Extrapolation.fit("line", get_states(train), get_future(train), get_states(test), get_future(test))
    errors = [
        judge_paths(place_forecast(model.forecast(get_states(test), 15), test), get_paths(test))
        .table["ade"]
        .mean()
        for model in (net, again, line)
    ]
    assert errors[0] == errors[1]
    assert errors[0] < 0.7 * errors[2]  # type: ignore[operator]
    with pytest.raises(InputError, match="other sizes"):
        fit_paths(
            get_states(train),
            get_future(train),
            get_states(test),
            get_future(test),
            PathRecipe(hidden=8),
            start=net,
        )


def test_the_study_of_one_set_keeps_the_numbers_of_every_window(tmp_path: Path) -> None:
    quick = PathRecipe(components=2, hidden=8, updates=10, batch=16, checks=1)
    found = run_trajectory_study(
        tmp_path / "run",
        jaad=tracks(),
        recipe=quick,
        seeds=(0,),
        resamples=0,
        config=TrajectoryConfig(draws=20),
    )
    assert [each.name for each in found.sets] == ["JAAD", "JAAD at 10/s"]
    held = pl.read_parquet(tmp_path / "run" / "windows.parquet")
    one = held.filter((pl.col("set") == "JAAD") & (pl.col("way") == MIXTURE))
    assert one["ade"].mean() == pytest.approx(found.sets[0].summary[MIXTURE].value("ade"))
    assert (tmp_path / "run" / "networks" / "jaad" / "seed-0.safetensors").is_file()


@pytest.mark.slow
def test_the_study_runs_goes_on_and_is_drawn(tmp_path: Path) -> None:
    quick = PathRecipe(components=2, hidden=8, updates=20, batch=32, checks=2)
    given = {
        "recipe": quick,
        "onward": quick,
        "seeds": (0, 1),
        "resamples": 20,
        "config": TrajectoryConfig(draws=20),
    }
    kitti = tracks(6, frames=40, fps=10.0, dataset="KITTI tracking")
    streets = (tracks(6), tracks(3))
    found = run_trajectory_study(tmp_path / "run", jaad=tracks(), kitti=kitti, streets=streets, **given)  # type: ignore[arg-type]
    assert [each.name for each in found.sets] == [
        "JAAD",
        "JAAD at 10/s",
        "KITTI",
        "KITTI, ground",
        "streets of another town",
    ]
    for judged in found.sets:
        assert {*FLOORS, MIXTURE, SINGLE} <= set(judged.ways)
        assert len(judged.seeds_ade) == 2
        assert judged.ways[SINGLE].table["ade"].mean() == pytest.approx(np.mean(judged.seeds_ade))
    assert found.sets[2].counts["test"]["videos"] == 6
    assert "iou" not in found.sets[3].ways[MIXTURE].metrics
    held = pl.read_parquet(tmp_path / "run" / "windows.parquet")
    assert held["way"].n_unique() == 6
    assert json.loads((tmp_path / "run" / "results.json").read_text())["seeds"] == [0, 1]
    text = format_trajectory_study(found)
    assert "mixture less Kalman filter" in text
    assert "KITTI, ground" in report([build_trajectory_section(found)], title="x")
    assert decide(found.sets[0].differences["linear fit"], "ade") in ("better", "worse", "not different")
    files = sorted((tmp_path / "run" / "networks").rglob("*.safetensors"))
    before = [path.stat().st_mtime_ns for path in files]
    again = run_trajectory_study(tmp_path / "run", jaad=tracks(), kitti=kitti, streets=streets, **given)  # type: ignore[arg-type]
    assert [path.stat().st_mtime_ns for path in files] == before
    assert again.as_dict() == found.as_dict()
    with pytest.raises(InputError, match="another recipe"):
        run_trajectory_study(tmp_path / "run", jaad=tracks(), **{**given, "recipe": QUICK})  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no set"):
        run_trajectory_study(tmp_path / "none")


def test_a_network_that_began_anew_is_not_taken_for_one_that_goes_on(tmp_path: Path) -> None:
    quick = PathRecipe(components=2, hidden=8, updates=2, batch=8, checks=1)
    part = _Part.cut(tracks(1, frames=40, fps=10.0), WindowProtocol())

    def work() -> _Work:
        return _Work(tmp_path, (0,), TrajectoryConfig(), 0, None, 1)

    alone = work().fit("KITTI fold 0", part, part, quick)
    assert work().fit("KITTI fold 0", part, part, quick)[0].facts == alone[0].facts
    with pytest.raises(InputError, match="with or without JAAD's"):
        work().fit("KITTI fold 0", part, part, quick, alone)
    assert work().fit("KITTI fold 1", part, part, quick, alone)[0].facts["onward"]
    with pytest.raises(InputError, match="with or without JAAD's"):
        work().fit("KITTI fold 1", part, part, quick)


def test_folds_hold_every_video_once() -> None:
    windows = cut_windows(tracks(7), WindowProtocol())
    dealt = deal_folds(windows, 3)
    assert sorted(video for fold in dealt for video in fold) == sorted(set(windows.video.tolist()))
    assert {len(fold) for fold in dealt} <= {2, 3}
    with pytest.raises(InputError, match="5 folds"):
        deal_folds(cut_windows(tracks(2), WindowProtocol()), 5)


def test_mirrored_windows_are_mirrored_forecasts() -> None:
    """Left and right are alike to straight lines and the filter."""
    windows: Windows = cut_windows(tracks(2), WindowProtocol())
    states = get_states(windows)
    turned = States(states.past * np.array([-1, 1, 1, 1]), states.position, states.step_s)
    one, other = Kalman(0.02, 0.4).forecast(states, 9), Kalman(0.02, 0.4).forecast(turned, 9)
    assert other.mean[..., 0] == pytest.approx(-one.mean[..., 0])


def test_the_command_refuses_half_of_the_streets_and_folders_of_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from roadaware.cli import main

    asked = ["reproduce", "trajectories", "--output", str(tmp_path / "out")]
    assert main([*asked, "--data", str(tmp_path), "--scenes", str(tmp_path)]) == 2
    assert "two towns" in capsys.readouterr().err
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    assert (
        main(["reproduce", "trajectories", "--data", str(tmp_path), "--output", str(tmp_path / "other")]) == 2
    )
    assert "holds other things" in capsys.readouterr().err
    assert main([*asked, "--data", str(tmp_path / "gone")]) == 3
    assert not (tmp_path / "out").exists()
