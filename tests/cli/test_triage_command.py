"""`triage` ranks moments of tables, runs and videos; its lists are what other commands take; it goes on where it was."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from small_files import Command

from roadaware.analysis.annotation.selection import read_image_list
from roadaware.analysis.drives import find_drives
from roadaware.analysis.triage import read_verdicts, read_weights
from roadaware.errors import InputError, UsageError
from roadaware.io.files import write_atomically
from roadaware.io.video import VideoWriter
from roadaware.models.detector import FrameDetections
from roadaware.online.setup import WEIGHTS as BUNDLED_WEIGHTS
from roadaware.scenes.store import save
from roadaware.scenes.tables import Meta, Scenes
from roadaware.simulator.sound import build_voice
from roadaware.viewer.opening import hold_findings, read_findings


def street(name: str, side_m: float = 0.0, n: int = 80) -> Scenes:
    """A drive at 10 m/s towards a car that stands 40 m ahead, at 10 frames a second."""
    frame = np.arange(35)
    ahead = 40.0 - frame
    half, foot, middle = 375 / ahead, 240 + 750 / ahead, 320 + 500 * side_m / ahead
    boxes = pl.DataFrame(
        {
            "box": frame,
            "video": [name] * 35,
            "frame": frame,
            "tube": [0] * 35,
            "x1_px": middle - half,
            "y1_px": foot - 2 * half,
            "x2_px": middle + half,
            "y2_px": foot,
        }
    )
    return Scenes(
        videos=pl.DataFrame(
            {"video": [name], "width_px": [640], "height_px": [480], "fps": [10.0], "n_frames": [n]}
        ),
        frames=pl.DataFrame({"video": [name] * n, "frame": range(n), "t_s": np.arange(n) / 10}).with_columns(
            ego_speed_kmh=pl.lit(36.0)
        ),
        boxes=boxes,
        tubes=pl.DataFrame({"tube": [0], "video": [name]}),
        labels=pl.DataFrame({"box": frame, "kind": ["agent"] * 35, "label": [0] * 35}),
        meta=Meta(vocabularies={"agent": ("Car", "Ped")}),
    )


@pytest.fixture
def streets(tmp_path: Path) -> Path:
    for k in range(3):
        save(street(f"street-{k}", 0.3 * k), tmp_path / "streets" / f"{k}")
    return tmp_path / "streets"


def test_moments_are_ranked_listed_and_drawn(streets: Path, tmp_path: Path, roadaware: Command) -> None:
    out = tmp_path / "out"
    done = roadaware("triage", streets, "--output", out, "--json", tmp_path / "said.json")
    assert done.code == 0
    assert "a car comes closer on the own path, contact in" in done.out
    said = json.loads((tmp_path / "said.json").read_text())
    assert (said["videos"], said["failed"]) == (3, {})
    assert said["hours"] == pytest.approx(3 * 8 / 3600, rel=1e-3)
    listed = pl.read_csv(out / "moments.csv")
    assert listed["rank"].to_list() == list(range(1, len(listed) + 1))
    assert set(listed["video"]) == {"street-0", "street-1", "street-2"}
    whole = pl.read_parquet(out / "moments.parquet")
    assert listed["moment"].to_list() == whole["moment"].to_list()
    assert json.loads((out / "moments.json").read_text())["moments"][0]["reason"] == "collision"
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Moments worth a look" in page
    assert "--media DIR says where" in page
    assert roadaware("triage", streets, "--output", out).code == 2
    before = (out / "moments.csv").read_bytes()
    assert (
        roadaware("triage", streets / "2", streets / "0", streets / "1", "-o", out, "--overwrite").code == 0
    )
    assert (out / "moments.csv").read_bytes() == before
    assert roadaware("triage", streets, "--top", 1, "-o", tmp_path / "one").code == 0
    assert len(pl.read_csv(tmp_path / "one" / "moments.csv")) == 1


def test_view_and_label_export_take_the_lists(tmp_path: Path, roadaware: Command) -> None:
    roadaware("label", "example", tmp_path / "made")
    out = tmp_path / "out"
    assert roadaware("triage", tmp_path / "made" / "proposals", "-o", out).code == 0
    listed = pl.read_csv(out / "moments.csv")
    assert len(listed)
    assert read_image_list(out) == listed.select("video", "frame").rows()
    assert read_image_list(out / "moments.csv") == listed.select("video", "frame").rows()
    made = tmp_path / "made"
    exported = roadaware(
        *("label", "export", made / "proposals", "--videos", made / "scenes", "--list", out, "--most", 3),
        *("--output", tmp_path / "tasks", "--classes", "dog", "debris"),
    )
    assert exported.code == 0
    assert hold_findings(out / "findings.json")
    found = [row for row in read_findings(out / "findings.json") if "frame" in row]
    assert [(row["video"], row["frame"]) for row in found] == listed.select("video", "frame").rows()
    assert found[0]["words"] == listed["sentence"][0]


def test_weights_decide_and_bad_ones_are_refused(streets: Path, tmp_path: Path, roadaware: Command) -> None:
    weights = tmp_path / "weights.yaml"
    weights.write_text("collision: 0.25\nrare: 0\nrepeat: 1\nusual_an_hour: 1000000\n")
    assert roadaware("triage", streets, "--weights", weights, "-o", tmp_path / "a").code == 0
    first = pl.read_csv(tmp_path / "a" / "moments.csv").row(0, named=True)
    assert first["worth"] == pytest.approx(0.25 * first["collision"] ** 0.5, abs=2e-4)
    for text, words in (
        ("colision: 0.2", "there is no 'colision'"),
        ("collision: 2", "collision should lie in 0 to 1"),
        ("collision: [1]", "collision is a number"),
        ("- collision", "expected names of reasons"),
        ("\n".join(f"{name}: 0" for name in read_weights(None).weights), "every reason weighs 0"),
    ):
        weights.write_text(text)
        done = roadaware("triage", streets, "--weights", weights, "-o", tmp_path / "b")
        assert done.code in (2, 3)
        assert words in done.err
        assert not (tmp_path / "b").exists()


@pytest.mark.slow
def test_verdicts_are_learnt_from_and_too_few_refused(tmp_path: Path, roadaware: Command) -> None:
    for k in range(22):
        save(street(f"v{k:02}", 0.1 * k), tmp_path / "streets" / f"{k}")
    given, out = tmp_path / "streets", tmp_path / "out"
    assert roadaware("triage", given, "-o", out).code == 0
    listed = pl.read_csv(out / "moments.csv", schema_overrides={"verdict": pl.String})
    half = len(listed) // 2
    judged = listed.with_columns(verdict=pl.Series(["no"] * half + ["Yes"] * (len(listed) - half)))
    judged.write_csv(tmp_path / "judged.csv")
    assert (
        roadaware("triage", given, "-o", tmp_path / "again", "--verdicts", tmp_path / "judged.csv").code == 0
    )
    again = json.loads((tmp_path / "again" / "moments.json").read_text())
    assert again["learnt"]["yes"] + again["learnt"]["no"] == len(listed)
    assert again["learnt"]["weights"]["collision"] < 0
    assert again["moments"][0]["moment"] in judged.filter(pl.col("verdict") == "Yes")["moment"].to_list()
    assert "verdicts of yes" in (tmp_path / "again" / "report.html").read_text(encoding="utf-8")
    judged.head(3).write_csv(tmp_path / "few.csv")
    done = roadaware("triage", given, "-o", tmp_path / "few", "--verdicts", tmp_path / "few.csv")
    assert done.code == 2
    assert "10 of each at least" in done.err
    (tmp_path / "odd.csv").write_text("moment,verdict\nv00:1,perhaps\n")
    done = roadaware("triage", given, "-o", tmp_path / "odd", "--verdicts", tmp_path / "odd.csv")
    assert done.code == 3
    assert "yes or no, not 'perhaps'" in done.err
    (tmp_path / "odd.csv").write_text("moment\nv00:1\n")
    assert (
        "columns moment and verdict"
        in roadaware("triage", given, "-o", tmp_path / "odd", "--verdicts", tmp_path / "odd.csv").err
    )
    (tmp_path / "odd.csv").write_text("moment,verdict\nv00:1,yes\nv00:1,no\n")
    with pytest.raises(InputError, match="both verdicts"):
        read_verdicts(tmp_path / "odd.csv")


def test_what_is_damaged_is_named_and_the_rest_goes_on(
    streets: Path, tmp_path: Path, roadaware: Command
) -> None:
    part = next((streets / "1").glob("boxes-*.parquet"))
    part.write_bytes(part.read_bytes()[:-20])
    done = roadaware("triage", streets, "-o", tmp_path / "out")
    assert done.code == 1
    assert f"not taken: {streets / '1'}" in done.out
    assert "1 of 3 inputs" in done.err
    assert set(pl.read_csv(tmp_path / "out" / "moments.csv")["video"]) == {"street-0", "street-2"}
    assert "could not be taken" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    alone = roadaware("triage", streets / "1", "-o", tmp_path / "alone")
    assert alone.code == 3
    assert not (tmp_path / "alone").exists()


def test_another_model_of_the_same_videos_may_disagree(
    streets: Path, tmp_path: Path, roadaware: Command
) -> None:
    save(street("street-0", 0.0), tmp_path / "other" / "same")
    empty = street("street-1").with_tables(
        boxes=street("street-1").boxes.clear(), labels=street("street-1").labels.clear()
    )
    save(empty, tmp_path / "other" / "empty")
    done = roadaware("triage", streets, tmp_path / "other", "-o", tmp_path / "twice")
    assert done.code == 2
    assert "both hold the video street-0; name one of them with --second" in done.err
    # Frames in which the other says nothing are taken for frames that it did not look at.
    second = street("street-2", 3.0)
    save(second, tmp_path / "second")
    assert roadaware("triage", streets, "--second", tmp_path / "second", "-o", tmp_path / "out").code == 0
    table = pl.read_parquet(tmp_path / "out" / "moments.parquet")
    alone = table.group_by("video").agg(pl.col("disagreement").max()).sort("video")["disagreement"].to_list()
    assert alone[:2] == [0.0, 0.0]
    assert alone[2] > 0.3


def test_nothing_to_rank_is_said(tmp_path: Path, roadaware: Command) -> None:
    assert "name at least one video" in roadaware("triage", "-o", tmp_path / "out").err
    assert roadaware("triage", tmp_path / "nowhere", "-o", tmp_path / "out").code == 3
    (tmp_path / "empty").mkdir()
    done = roadaware("triage", tmp_path / "empty", "-o", tmp_path / "out")
    assert done.code == 3
    assert "no video, run of `watch`" in done.err
    save(street("calm", side_m=6.0), tmp_path / "calm")
    assert roadaware("triage", tmp_path / "calm", "-o", tmp_path / "out").code == 0
    assert "No moment stands out" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


class Growing:
    """A detector that sees a car which comes closer, and counts the videos that it looks at."""

    kinds, av_labels, delay = {"agent": ("Car", "Ped")}, (), 0
    videos = 0

    def reset(self) -> None:
        self.frame = 0
        Growing.videos += 1

    def step(self, image: np.ndarray) -> list[FrameDetections]:
        half = 300 / (36.0 - self.frame)
        box = np.array([[80 - half, 60 - half, 80 + half, 60 + half]], np.float32)
        self.frame += 1
        score = np.array([[0.9, 0.05]], np.float32)
        return [FrameDetections(self.frame - 1, box, score[0, :1], score, np.zeros(0, np.float32))]

    def finish(self) -> list[FrameDetections]:
        return []


def write_film(path: Path, frames: int = 30) -> None:
    with VideoWriter(path, 160, 120, 10.0) as film:
        for _ in range(frames):
            film.write(np.full((120, 160, 3), 90, np.uint8))


@pytest.mark.slow
def test_videos_are_watched_once_and_a_broken_one_is_named(
    tmp_path: Path, roadaware: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roadaware.cli.watch.load_detector", lambda *given: Growing())
    monkeypatch.setattr("roadaware.cli.watch.build_annotator", lambda *given, **more: None)
    night = tmp_path / "night"
    (night / "late").mkdir(parents=True)
    write_film(night / "one.mp4")
    write_film(night / "late" / "two.mp4")
    (night / "broken.mp4").write_bytes((night / "one.mp4").read_bytes()[:300])
    out = tmp_path / "out"
    words = ("triage", night, "--processes", 1, "-o", out)
    done = roadaware(*words)
    assert done.code == 1
    assert f"not taken: {night / 'broken.mp4'}" in done.out
    assert set(pl.read_csv(out / "moments.csv")["video"]) == {"one", "late-two"}
    assert (tmp_path / "out-watches" / "late-two" / "summary.json").is_file()
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "data:video/mp4" in page
    before, watched = (out / "moments.csv").read_bytes(), Growing.videos
    (night / "broken.mp4").unlink()
    # As a kill leaves it: one watch whole, one that did not come to its summary.
    (tmp_path / "out-watches" / "one" / "summary.json").unlink()
    assert roadaware(*words, "--overwrite").code == 0
    assert Growing.videos > watched
    assert (out / "moments.csv").read_bytes() == before
    watched = Growing.videos
    # As a version has left it that saw no speed, or a kill before things were looked for.
    (tmp_path / "out-watches" / "one" / "speed.parquet").unlink()
    things = tmp_path / "out-watches" / "one" / "obstacles.parquet"
    whole = things.read_bytes()
    things.unlink()
    torch.set_num_threads(2)
    assert roadaware(*words, "--overwrite").code == 0
    assert torch.get_num_threads() == 1
    assert things.read_bytes() == whole
    assert Growing.videos == watched
    seen = pl.read_parquet(tmp_path / "out-watches" / "one" / "speed.parquet")
    assert seen.columns == ["t_s", "speed_mps", "yaw_rate_radps"]
    # The folder of a watch is taken as well, and one whose forecasts are none is named.
    run = tmp_path / "out-watches" / "one"
    assert roadaware("triage", run, "-o", tmp_path / "run").code == 0
    pl.DataFrame({"tube": [0], "crossing": [0.5]}).write_parquet(run / "crossing.parquet")
    done = roadaware("triage", run, "-o", tmp_path / "run-2")
    assert done.code == 3
    assert "forecasts, sounds, own motion or obstacles lack a column" in done.err
    done = roadaware(*words, "--overwrite", "--fps", 5)
    assert done.code == 2
    assert "with other settings" in done.err


@pytest.mark.slow
def test_a_siren_is_listened_for_once_and_counts_out_of_sight(
    tmp_path: Path, roadaware: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roadaware.cli.watch.load_detector", lambda *given: Growing())
    monkeypatch.setattr("roadaware.cli.watch.build_annotator", lambda *given, **more: None)
    night, out = tmp_path / "night", tmp_path / "out"
    night.mkdir()
    siren = build_voice("siren (police)", np.random.default_rng(0)).samples(np.zeros(4 * 16_000))
    siren = np.concatenate([np.zeros(5 * 16_000), 0.3 * siren, np.zeros(3 * 16_000)]).astype(np.float32)
    with VideoWriter(night / "one.mp4", 160, 120, 2.5, sound_rate=16_000) as film:
        for _ in range(30):
            film.write(np.full((120, 160, 3), 90, np.uint8))
        film.write_sound(np.stack([siren, siren], axis=1))
    words = ("triage", night, "--listen", "siren", "--processes", 1, "--overwrite", "-o", out)
    assert roadaware(*words).code == 0
    moments = pl.read_parquet(out / "moments.parquet").filter(pl.col("alarm") > 0.4)
    assert moments["t_s"].is_between(4.0, 9.5).all()
    assert len(moments) >= 1
    heard, watched = tmp_path / "out-watches" / "one" / "heard.parquet", Growing.videos
    assert roadaware(*words).code == 0
    assert Growing.videos == watched
    # As a kill between watch and hearing leaves it.
    before = heard.read_bytes()
    heard.unlink()
    assert roadaware(*words).code == 0
    assert heard.read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("on", ["local", "ray://local"])
def test_two_workers_rank_what_one_ranks(
    tmp_path: Path, made_up: Path, roadaware: Command, monkeypatch: pytest.MonkeyPatch, on: str
) -> None:
    """The bytes of every table, list and page; of the watches those of the tables, which hold no times of work."""
    if on != "local":
        pytest.importorskip("ray")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    night = tmp_path / "night"
    night.mkdir()
    for number in (0, 1):
        shutil.copy(made_up / f"road/scenes/road-000{number}/video.mp4", night / f"{number}.mp4")
    words = ("triage", night, "--clips", 1, "--overwrite", "--processes")
    kept = []
    for processes, where in ((1, "local"), (2, on)):
        out, watches = tmp_path / "out", tmp_path / f"watches-{processes}"
        done = roadaware(*words, processes, "--on", where, "-o", out, "--watches", watches)
        assert done.code == 0, done.err
        files = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
        tables = (path for path in watches.rglob("*.parquet") if path.name != "timing.parquet")
        files |= {str(path.relative_to(watches)): path.read_bytes() for path in tables}
        kept.append(files)
        assert {"moments.csv", "moments.parquet", "list.csv", "report.html"} <= set(files)
        assert sum(name.endswith(".parquet") for name in files) > 3
        assert len(pl.read_csv(out / "moments.csv"))
    assert sorted(kept[0]) == sorted(kept[1])
    assert [name for name in kept[0] if kept[0][name] != kept[1][name]] == []


def test_a_fault_of_roadaware_in_a_video_ends_in_70_once_the_others_are_ranked(
    tmp_path: Path, roadaware: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Faulty(Growing):
        def step(self, image: np.ndarray) -> list[FrameDetections]:
            if image.shape[1] == 80:
                raise ZeroDivisionError
            return super().step(image)

    monkeypatch.setattr("roadaware.cli.watch.load_detector", lambda *given: Faulty())
    monkeypatch.setattr("roadaware.cli.watch.build_annotator", lambda *given, **more: None)
    night, out = tmp_path / "night", tmp_path / "out"
    night.mkdir()
    write_film(night / "one.mp4")
    with VideoWriter(night / "two.mp4", 80, 60, 10.0) as film:
        film.write(np.full((60, 80, 3), 90, np.uint8))
    done = roadaware("triage", night, "--processes", 1, "-o", out)
    assert done.code == 70
    assert (
        f"1 of 2 inputs met a fault of roadaware, the first {night / 'two.mp4'}; the others are ranked in"
        in done.err
    )
    assert set(pl.read_csv(out / "moments.csv")["video"]) == {"one"}
    done = roadaware("status", tmp_path / "out-watches")
    assert "1 of 2 videos done, 1 failed, 0 left" in done.out
    assert "a fault of roadaware, ZeroDivisionError" in done.out
    (night / "one.mp4").unlink()
    done = roadaware("triage", night, "--processes", 1, "-o", tmp_path / "other")
    assert done.code == 70
    assert "1 of 1 inputs met a fault of roadaware" in done.err


def test_two_videos_of_one_name_are_told_apart(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.mp4").write_bytes(b"")
    films, _ = find_drives([tmp_path])
    assert set(films) == {"a-x", "b-x"}
    with pytest.raises(UsageError, match="would have one name, x"):
        find_drives([tmp_path / "a", tmp_path / "b"])


def test_names_of_watches_are_folders_whatever_the_films_are_called(tmp_path: Path) -> None:
    named = ("watches.json", "x.fault.txt", " ", "\u96e8" * 60, "late\nfilm", os.fsdecode(b"old\xff"))
    for name in named:
        (tmp_path / f"{name}.mp4").write_bytes(b"")
    films, _ = find_drives([tmp_path])
    assert {path.stem for path in films.values()} == set(named)
    assert {"video-watches.json", "video-x.fault.txt", "video- ", "late\\nfilm", "old\\udcff"} < set(films)
    for name in films:
        # Beside the folder of the watch lies a file of what went wrong.
        (tmp_path / "watches" / name).mkdir(parents=True)
        write_atomically(tmp_path / "watches" / f"{name}.fault.txt", b"")
    (tmp_path / "...mp4").write_bytes(b"")
    assert set(find_drives([tmp_path / "...mp4"])[0]) == {"video-.."}


def test_a_film_has_the_name_of_its_shortest_way_whatever_links_lead_to_it(tmp_path: Path) -> None:
    (tmp_path / "night" / "late").mkdir(parents=True)
    (tmp_path / "night" / "late" / "one.mp4").write_bytes(b"")
    (tmp_path / "night" / "z.mp4").write_bytes(b"")
    (tmp_path / "night" / "again").symlink_to(tmp_path / "night")
    night, late = tmp_path / "night", tmp_path / "night" / "late"
    for paths in ([night], [night, late], [late, night]):
        assert set(find_drives(paths)[0]) == {"late-one", "z"}


def test_a_run_given_again_takes_its_watches_and_no_other_detector(
    tmp_path: Path, roadaware: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roadaware.cli.watch.load_detector", lambda *given: Growing())
    monkeypatch.setattr("roadaware.cli.watch.build_annotator", lambda *given, **more: None)
    (tmp_path / "night").mkdir()
    for name in ("one", "two"):
        write_film(tmp_path / "night" / f"{name}.mp4", 4)
    weights = tmp_path / "own.safetensors"
    shutil.copy(BUNDLED_WEIGHTS / "compact-road.safetensors", weights)
    words = ("triage", tmp_path / "night", "--processes", 1, "-o", tmp_path / "out", "--overwrite")
    done = roadaware(*words, "--detector", weights)
    assert done.code == 0
    # Said once, and not of each film.
    assert done.err.count("not validated on real roads") == 1
    # Given again in the folder of the films, it finds the films alone, and not its watches as drives of their own.
    monkeypatch.chdir(tmp_path / "night")
    Path("runs").mkdir()
    shutil.move(tmp_path / "out-watches", tmp_path / "night" / "runs" / "triage-drives-watches")
    words = ("triage", ".", "--processes", 1, "--overwrite")
    watched = Growing.videos
    done = roadaware(*words, "--detector", weights, "--json", tmp_path / "said.json")
    assert done.code == 0
    assert json.loads((tmp_path / "said.json").read_text())["videos"] == 2
    assert Growing.videos == watched
    weights.write_bytes(weights.read_bytes()[:-1] + b"\0")
    done = roadaware(*words, "--detector", weights)
    assert done.code == 2
    assert "holds watches with other settings (models [['own.safetensors', '" in done.err


def test_watches_of_earlier_versions_are_taken_where_whole_and_made_anew_where_broken_off(
    tmp_path: Path, roadaware: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roadaware.cli.watch.load_detector", lambda *given: Growing())
    monkeypatch.setattr("roadaware.cli.watch.build_annotator", lambda *given, **more: None)
    (tmp_path / "night").mkdir()
    for name in ("whole", "broken", "changed"):
        write_film(tmp_path / "night" / f"{name}.mp4", 4)
    words = ("triage", tmp_path / "night", "--processes", 1, "-o", tmp_path / "out", "--overwrite")
    assert roadaware(*words).code == 0
    for name in ("whole", "broken"):
        path = tmp_path / "out-watches" / name / "watch.json"
        record = json.loads(path.read_text())
        del record["ends_digest"]
        path.write_text(json.dumps(record | {"version": "0.8.0"}))
    for name in ("broken", "changed"):
        (tmp_path / "out-watches" / name / "summary.json").unlink()
    write_film(tmp_path / "night" / "changed.mp4", 5)
    before = (tmp_path / "out-watches" / "whole" / "summary.json").stat()
    done = roadaware(*words)
    assert done.code == 0, done.err
    assert (tmp_path / "out-watches" / "whole" / "summary.json").stat() == before
    for name, frames in (("broken", 4), ("changed", 5)):
        assert json.loads((tmp_path / "out-watches" / name / "summary.json").read_text())["frames"] == frames
        assert "ends_digest" in json.loads((tmp_path / "out-watches" / name / "watch.json").read_text())


def test_watches_made_by_nobody_knows_whom_are_not_vouched_for(
    tmp_path: Path, roadaware: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roadaware.cli.watch.load_detector", lambda *given: Growing())
    monkeypatch.setattr("roadaware.cli.watch.build_annotator", lambda *given, **more: None)
    write_film(tmp_path / "one.mp4", 4)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        shutil.copy(BUNDLED_WEIGHTS / "compact-road.safetensors", tmp_path / name / "own.safetensors")
    weights = tmp_path / "b" / "own.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\0")
    words = ("triage", tmp_path / "one.mp4", "--processes", 1, "-o", tmp_path / "out", "--overwrite")
    words += ("--detector", tmp_path / "a" / "own.safetensors", "--detector", weights)
    assert roadaware(*words).code == 0
    path = tmp_path / "out-watches" / "watches.json"
    whole = json.loads(path.read_text())
    # One file name in two folders is two detectors.
    assert [name for name, _ in whole["settings"]["models"]] == ["own.safetensors"] * 2
    older = {"format": whole["format"], "settings": dict(whole["settings"])}
    del older["settings"]["models"]
    path.write_text(json.dumps(older))
    watched = Growing.videos
    assert roadaware(*words).code == 0
    assert json.loads(path.read_text()) == whole
    path.write_text(json.dumps(older))
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")
    done = roadaware(*words)
    assert done.code == 2
    assert "holds watches with other settings (models ['" in done.err
    assert json.loads(path.read_text()) == older
    made = tmp_path / "out-watches" / "one" / "watch.json"
    record = json.loads(made.read_text())
    del record["models"]
    made.write_text(json.dumps(record))
    assert roadaware(*words).code == 0
    assert json.loads(path.read_text()) == older
    assert Growing.videos == watched


def test_watches_lie_beside_a_result_in_a_store_and_another_machine_goes_on(
    tmp_path: Path, roadaware: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roadaware.cli.watch.load_detector", lambda *given: Growing())
    monkeypatch.setattr("roadaware.cli.watch.build_annotator", lambda *given, **more: None)
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ROADAWARE_MIRRORS", "{}")
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.store.clear()
    write_film(tmp_path / "one.mp4", 4)
    words = ("triage", tmp_path / "one.mp4", "-o", "memory://b/night", "--processes", 1, "--overwrite")
    assert roadaware(*words).code == 0
    assert memory.exists("/b/night/moments.csv")
    assert memory.exists("/b/night-watches/one/summary.json")
    before, watched = memory.cat_file("/b/night/moments.csv"), Growing.videos
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "other"))
    done = roadaware("status", "memory://b/night-watches")
    assert "finished, every part is done (watches)" in done.out
    assert roadaware(*words).code == 0
    assert (memory.cat_file("/b/night/moments.csv"), Growing.videos) == (before, watched)
    memory.store.clear()


def test_an_input_twice_counts_once(streets: Path, tmp_path: Path, roadaware: Command) -> None:
    said = tmp_path / "said.json"
    done = roadaware("triage", streets, streets, streets / "1", "-o", tmp_path / "out", "--json", said)
    assert done.code == 0
    assert json.loads(said.read_text())["videos"] == 3


def test_what_cannot_be_used_is_refused_before_work(
    streets: Path, tmp_path: Path, roadaware: Command
) -> None:
    missing = roadaware("triage", streets, "--media", tmp_path / "none", "-o", tmp_path / "out")
    assert missing.code != 0
    assert "no such file or folder" in missing.err
    assert roadaware("triage", streets, "--processes", 0, "-o", tmp_path / "out").code == 2
    unknown = roadaware("triage", streets, "--detector", tmp_path / "none.pt", "-o", tmp_path / "out")
    assert unknown.code != 0
    assert "no such file or folder" in unknown.err
    unheard = roadaware("triage", streets, "--listen", "yodelling", "-o", tmp_path / "out")
    assert unheard.code == 2
    assert "yodelling" in unheard.err
    inside = roadaware("triage", streets, "-o", streets / "out")
    assert inside.code == 2
    assert "lies inside the input" in inside.err
    bare = street("bare")
    save(
        Scenes(
            videos=bare.videos,
            frames=bare.frames,
            boxes=bare.boxes.drop("tube"),
            labels=bare.labels,
            meta=bare.meta,
        ),
        tmp_path / "bare",
    )
    refused = roadaware("triage", tmp_path / "bare", "-o", tmp_path / "out")
    assert refused.code != 0
    assert "boxes and no tubes" in refused.err
    assert not (tmp_path / "out").exists()
