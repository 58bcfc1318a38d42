"""`roadaware propose`: datasets are told from their files, parameters are turned, and results are saved."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "corner_cases"))

from planted_kitti import planted_kitti

from roadaware.cli import propose as command
from roadaware.cli.app import main
from roadaware.corner_cases.config import CopgConfig, configure_copg
from roadaware.datasets.detect_format import detect_reader
from roadaware.errors import DatasetNotFoundError, UsageError
from roadaware.reports.scene_text import format_reasons
from roadaware.scenes.store import open_predictions


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return planted_kitti(tmp_path_factory.mktemp("planted") / "kitti", 3)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))


def test_a_dataset_is_proposed_for_and_drawn(root, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["propose", str(root), "--out", str(out), "--knob", "theta_deg=10", "min_points=4", "--draw", "1"]
    assert main([*words, "-q"]) == 0
    told = capsys.readouterr().out
    assert "4 images with a sweep, 3 of them with a proposal" in told
    assert "left out, since nothing was given for it: background removal and common classes" in told
    assert len(list((out / "steps").glob("*.png"))) == 1
    found = open_predictions(out / "proposals")
    assert found.meta.notes["proposals"]["config"]["theta_deg"] == 10
    assert main([*words, "-q", "--json", "-"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["made"], again["pictures"]) == (0, 4)
    assert open_predictions(out / "proposals") == found


def test_cuboids_are_written_for_other_tools_and_poses_are_asked_for(root, tmp_path, capsys):
    out = tmp_path / "out"
    assert (
        main(["propose", str(root), "--out", str(out), "--most", "1", "--as", "kitti", "-q", "--json", "-"])
        == 0
    )
    told = json.loads(capsys.readouterr().out)
    found = open_predictions(out / "proposals")
    assert told["cuboids"] == {"kitti": len(found.boxes)}
    lines = [path.read_text() for path in (out / "cuboids" / "kitti").rglob("*.txt")]
    assert len(lines) == 4
    assert sum(text.count("\n") for text in lines) == len(found.boxes) <= 4
    for more in (["--track"], ["--as", "nuscenes"]):
        assert main(["propose", str(root), "--out", str(tmp_path / "none"), *more]) == 2
        assert "need poses of the vehicle" in capsys.readouterr().err
        assert not (tmp_path / "none").exists()


def test_a_run_of_an_earlier_version_goes_on_as_the_angle(root, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["propose", str(root), "--out", str(out), "-q", "--json", "-"]
    assert main([*words, "--config", "angle"]) == 0
    head = json.loads((out / "proposals.json").read_text())
    for name in ("local_ground_m", "reach_m", "duplicate_iou", "ranking", "most"):
        del head["order"]["config"][name]
    (out / "proposals.json").write_text(json.dumps(head))
    capsys.readouterr()
    assert main([*words, "--config", "angle"]) == 0
    assert json.loads(capsys.readouterr().out)["made"] == 0
    (out / "proposals.json").write_text(json.dumps(head))
    assert main(words) == 2
    assert "holds proposals of another order" in capsys.readouterr().err


def test_another_order_needs_another_folder_or_overwrite(root, tmp_path, capsys):
    words = ["propose", str(root), "--out", str(tmp_path / "out"), "-q", "--json", "-", "--draw", "1"]
    assert main(words) == 0
    capsys.readouterr()
    assert main([*words, "--knob", "min_points=8"]) == 2
    assert "holds proposals of another order; say --overwrite" in capsys.readouterr().err
    (tmp_path / "out" / "steps" / "0007-old.png").write_bytes(b"")
    assert main([*words, "--knob", "min_points=8", "--overwrite"]) == 0
    assert json.loads(capsys.readouterr().out)["made"] == 4
    assert len(list((tmp_path / "out" / "steps").iterdir())) == 1


def test_only_a_split_and_only_geometry(root, tmp_path, capsys):
    words = ["propose", str(root / "training"), "--reader", "kitti", "--split", "default/train"]
    assert main([*words, "--stage", "initial", "--out", str(tmp_path / "out"), "-q", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["pictures"] == 3


@pytest.mark.parametrize(
    ("more", "code", "told"),
    [
        (["--knob", "theta=4"], 2, "NAME=VALUE with one of"),
        (["--knob", "theta_deg=-4"], 2, "theta_deg should lie in"),
        (["--knob", "columns=10.5"], 2, "columns should be a whole number in 8 to 16384, not 10.5"),
        (["--knob", "ground_draws=1.5e0"], 2, "ground_draws should be a whole number in"),
        (["--knob", 'background="road"'], 2, "background should be names of classes, not 'road'"),
        (["--knob", "theta_deg=nan"], 2, "theta_deg should lie in 0.1 to 89, not 'nan'"),
        (["--knob", "theta_deg=" + "[" * 5000], 2, "theta_deg should lie in"),
        (["--split", "default/none"], 2, "no video is in split"),
        (["--detections", "/nowhere"], 3, "nowhere"),
        (["--semantics", "truth"], 2, "name a folder of masks"),
    ],
)
def test_wrong_requests_say_what_is_wrong(root, tmp_path, capsys, more, code, told):
    assert main(["propose", str(root), "--out", str(tmp_path / "out"), *more]) == code
    assert told in capsys.readouterr().err


def test_what_is_no_dataset_with_sweeps_is_named(tmp_path, capsys):
    with pytest.raises(DatasetNotFoundError, match="no such file or folder"):
        detect_reader(tmp_path / "clips")
    (tmp_path / "clips").mkdir()
    with pytest.raises(DatasetNotFoundError, match="expected a dataset with sweeps"):
        detect_reader(tmp_path)
    assert main(["propose", str(tmp_path / "clips"), "--out", str(tmp_path / "out")]) == 3
    assert "kitti, nuscenes, once, simulator" in capsys.readouterr().err


def test_links_out_of_a_set_do_not_hide_it(tmp_path, capsys):
    root = planted_kitti(tmp_path / "kitti", 2)
    shutil.move(root / "training" / "velodyne", tmp_path / "disk")
    (root / "training" / "velodyne").symlink_to(tmp_path / "disk")
    assert detect_reader(root) == detect_reader(root / "training") == "kitti"
    assert main(["propose", str(root), "--out", str(tmp_path / "out")]) == 0
    assert "a link leads out of the dataset's folder" in capsys.readouterr().out


def test_sweeps_without_calibration_are_named(tmp_path, capsys):
    root = planted_kitti(tmp_path / "kitti", 2)
    for part in ("training", "testing"):
        shutil.rmtree(root / part / "calib")
    assert main(["propose", str(root), "--out", str(tmp_path / "out")]) == 3
    assert "no image can be proposed for: no calibration (2 times)" in capsys.readouterr().err


def test_a_file_in_place_of_the_folder_is_named(root, tmp_path, capsys):
    (tmp_path / "out").write_text("mine")
    for verb in ("propose", "ablate"):
        assert main([verb, str(root), "--out", str(tmp_path / "out")]) == 2
        assert "out is a file; name a folder to write into" in capsys.readouterr().err
    assert (tmp_path / "out").read_text() == "mine"


def test_strict_fails_where_pictures_were_left_out_or_files_refused(root, tmp_path, capsys):
    assert main(["propose", str(root), "--out", str(tmp_path / "whole"), "-q", "--strict"]) == 0
    bad = planted_kitti(tmp_path / "kitti", 3)
    (bad / "training" / "velodyne" / "000000.bin").write_bytes(bytes(41))
    (bad / "training" / "calib" / "000001.txt").write_text("P2: 1")
    words = [str(bad), "-q", "--strict"]
    for verb, more in (("propose", []), ("ablate", ["--grid", "theta_deg=8", "--config", "default"])):
        assert main([verb, *words, *more, "--out", str(tmp_path / verb)]) == 1
        said = "--strict: 2 images were left out and 1 rows or files of the set were refused"
        assert said in capsys.readouterr().err


def test_an_interrupted_command_says_how_to_go_on(root, tmp_path, capsys, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "propose_set", stopped)
    assert main(["propose", str(root), "--out", str(tmp_path / "out")]) == 130
    assert "the same command goes on with it" in capsys.readouterr().err


def test_what_is_wrong_and_odd_is_told(tmp_path, capsys):
    root = planted_kitti(tmp_path / "kitti", 4)
    velodyne = root / "training" / "velodyne"
    (velodyne / "000000.bin").write_bytes(bytes(41))
    (velodyne / "000001.bin").write_bytes(b"")
    (root / "training" / "calib" / "000002.txt").write_text("P2: 1")
    assert main(["propose", str(root), "--out", str(tmp_path / "out"), "-q"]) == 0
    told = capsys.readouterr().out
    assert "2 images without proposals because of this:" in told
    assert "1: no return of the sweep can be used" in told
    assert f"1 rows or files of the set were refused; roadaware read kitti {root} says" in told


def test_a_set_of_which_nothing_can_be_used_is_an_error(tmp_path, capsys):
    root = planted_kitti(tmp_path / "kitti", 2)
    for path in root.glob("*/velodyne/*.bin"):
        path.write_bytes(bytes(41))
    out = tmp_path / "out"
    assert main(["propose", str(root), "--out", str(out), "-q"]) == 3
    assert "no image can be proposed for: 41 bytes are no whole number" in capsys.readouterr().err
    assert not (out / "proposals").exists()


def test_a_picture_that_is_not_there_is_not_drawn(tmp_path, capsys):
    root = planted_kitti(tmp_path / "kitti", 3)
    # What Pillow cannot decode has a size all the same.
    for picture in root.glob("training/image_2/*.png"):
        picture.write_bytes(picture.read_bytes()[:60])
    assert main(["propose", str(root), "--out", str(tmp_path / "out"), "--draw", "9"]) == 0
    told = capsys.readouterr()
    assert "1 images drawn" in told.out
    assert told.err.count("not drawn: no whole PNG or JPEG") == 2


def test_a_thousand_reasons_are_no_thousand_lines():
    told = format_reasons({f"reason {n}": 1 for n in range(1000)})
    assert len(told.splitlines()) == 11
    assert "990 further reasons" in told


def test_knobs_are_numbers_names_and_nothing():
    found = configure_copg(("max_width_m=4.5", "margin_px=null", "background=road,sky", "seed=7"))
    assert (found.max_width_m, found.margin_px, found.seed) == (4.5, None, 7)
    assert found.background == ("road", "sky")
    assert configure_copg(()) == CopgConfig()
    assert configure_copg(("reach_m=0.4,2", "most=null")) == CopgConfig(reach_m=(0.4, 2), most=None)
    assert configure_copg(("reach_m=0.4",), "angle") == CopgConfig.angle(reach_m=(0.4,))
    with pytest.raises(UsageError, match="not 'seed'"):
        configure_copg(("seed",))


def test_a_parameter_twice_is_refused():
    with pytest.raises(UsageError, match="theta_deg twice"):
        configure_copg(("theta_deg=5", "theta_deg=6"))


def test_overwrite_removes_tracks_and_cuboids_of_the_earlier_run(root, tmp_path, capsys):
    words = ["propose", str(root), "--output", str(tmp_path / "out")]
    assert main([*words, "--as", "kitti"]) == 0
    (tmp_path / "out/tracks").mkdir()
    assert (tmp_path / "out/cuboids").is_dir()
    assert main([*words, "--overwrite"]) == 0
    assert not (tmp_path / "out/cuboids").exists()
    assert not (tmp_path / "out/tracks").exists()
