"""Every command of the app with small inputs that it takes: what is fuzzed, watched and timed."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
for _place in ("cli", "corner_cases", "training", "tasks", "online", "models"):
    sys.path.append(str(_HERE / _place))

ALIASES = {"eval": "evaluate"}
"""Groups of commands that are the same objects under a second name."""

SERVING = {("view",), ("convert",)}
"""Commands that run until they are interrupted, or need what `[dev]` lacks; `tests/viewer` tries them."""


@dataclass(frozen=True)
class Case:
    """A command that works.

    Args:
        words: behind `roadaware`; IN/ stands for the folder of the inputs, OUT for a new place.
        needs_torch: whether it loads networks, and so takes seconds.
        workers: whether it may start processes of its own.
        forms: which outputs it has, option to "file" or "folder".
    """

    words: tuple[str, ...]
    outputs: tuple[tuple[str, str], ...] = ()
    needs_torch: bool = False
    workers: bool = False


def _case(line: str, *outputs: str, torch: bool = False, workers: bool = False) -> Case:
    named = tuple((each.split(":")[0], each.split(":")[1]) for each in outputs)
    return Case(tuple(line.split()), named, torch, workers)


_SCORED = "--samples IN/ped/action_samples.csv --task action --resamples 5"
_ROAD = "--truth IN/events/road.json --predictions IN/events/predictions --resamples 0"
_STREETS = "IN/label/streets"
CASES: dict[tuple[str, ...], Case] = {
    ("demo",): _case("--resamples 5 -o OUT", "-o:folder", torch=True, workers=True),
    ("simulate",): _case(
        "--out OUT --preset road --seconds 0.5 --fps 4 --size 64x48 --processes 1", "--out:folder"
    ),
    ("draw",): _case("IN/synthetic/road --frames 2 --out OUT", "--out:folder"),
    ("read",): _case("jaad IN/jaad --output OUT", "--output:folder", workers=True),
    ("status",): _case("IN/synthetic/road"),
    ("stats",): _case("road IN/events/road.json -o OUT", "-o:folder"),
    ("audit",): _case("jaad IN/jaad --html OUT", "--html:file", workers=True),
    ("check", "annotations"): _case(
        "IN/rounds/original IN/rounds/round1 IN/rounds/round2 -o OUT --html OUT.html",
        "-o:folder",
        "--html:file",
    ),
    ("check", "example"): _case("OUT", ":folder"),
    ("doctor",): _case("pedestrians --scores IN/ped/action.csv --samples IN/ped/action_samples.csv"),
    ("models", "list"): _case(""),
    ("models", "show"): _case("street-small"),
    ("models", "get"): _case("segformer-b0 --from IN/hub/segformer", torch=True),
    ("models", "remove"): _case("street-small"),
    ("baseline",): _case(
        "jaad IN/jaad --task risk --model constant-velocity --resamples 0 -o OUT", "-o:folder", workers=True
    ),
    ("train",): _case("IN/recipes/steady.yaml --out OUT", "--out:folder", torch=True),
    ("predict",): _case("IN/tiny.safetensors --videos IN/films --out OUT", "--out:folder", torch=True),
    ("watch",): _case(
        "IN/films/drive.mp4 --weights IN/tiny.safetensors --seconds 0.4 --out OUT", "--out:folder", torch=True
    ),
    ("crossing",): _case("IN/tracks.csv --fps 30 --size 1920x1080 --out OUT", "--out:folder", torch=True),
    ("triage",): _case("IN/synthetic/road --clips 0 --out OUT", "--out:folder"),
    ("poses",): _case("IN/poses.safetensors --videos IN/kitti --out OUT", "--out:folder", torch=True),
    ("segment",): _case("IN/hub/segformer --videos IN/kitti --out OUT", "--out:folder", torch=True),
    ("propose",): _case("IN/kitti --out OUT", "--out:folder"),
    ("prelabel",): _case(
        "IN/proposals --clip IN/hub/clip --videos IN/kitti --texts tyre,dog --out OUT",
        "--out:folder",
        torch=True,
    ),
    ("rescore", "fit-energy"): _case(
        "--truth IN/home/tables --detections IN/home/found --out OUT", "--out:file"
    ),
    ("rescore", "fit-memory"): _case("IN/home/tables --pictures IN/home/pictures --out OUT", "--out:file"),
    ("rescore", "apply"): _case(
        "IN/away/proposals --fit IN/energy.npz --detections IN/away/found --dataset IN/away/tables "
        "--pictures IN/away/pictures --out OUT",
        "--out:folder",
    ),
    ("ablate",): _case(
        "IN/kitti --out OUT --grid theta_deg=4,12 --config default --resamples 5", "--out:folder"
    ),
    ("label", "example"): _case("OUT", ":folder"),
    ("label", "select"): _case(f"{_STREETS}/proposals --resamples 5 -o OUT", "-o:folder"),
    ("label", "export"): _case(
        f"{_STREETS}/proposals --videos {_STREETS}/scenes --most 3 --out OUT --classes dog debris",
        "--out:folder",
    ),
    ("label", "import"): _case(f"IN/label/tasks {_STREETS}/corrected.json -o OUT", "-o:folder"),
    ("label", "agree"): _case("IN/label/labels --resamples 5 -o OUT", "-o:folder"),
    ("export",): _case("IN/tiny.safetensors --out OUT --stream --size 64x48", "--out:file", torch=True),
    ("enforce",): _case(
        "IN/events/detections --requirements IN/events/rules.txt --truth IN/events/road.json --out OUT",
        "--out:folder",
    ),
    ("link",): _case("IN/events/detections --out OUT", "--out:folder"),
    ("submit",): _case("road IN/events/linked --truth IN/events/road.json --split all -o OUT", "-o:file"),
    ("evaluate", "pedestrians"): _case(f"--scores IN/ped/action.csv {_SCORED} -o OUT", "-o:folder"),
    ("evaluate", "agreement"): _case(
        "--scores IN/ped/intention.csv IN/ped/action.csv --tasks intention action --resamples 5 -o OUT "
        "--samples IN/ped/intention_samples.csv IN/ped/action_samples.csv",
        "-o:folder",
    ),
    ("evaluate", "road"): _case(f"{_ROAD} -o OUT", "-o:folder"),
    ("evaluate", "ucf24"): _case(
        "--truth IN/ucf/annotations.pkl --predictions IN/ucf/detections --resamples 0 -o OUT", "-o:folder"
    ),
    ("evaluate", "actions"): _case(
        "--truth IN/chaos/actions/gt.csv --predictions IN/chaos/actions/pred.csv --resamples 2 -o OUT "
        "--html OUT.html",
        "-o:folder",
        "--html:file",
    ),
    ("evaluate", "relations"): _case(
        "--truth IN/chaos/relations/truth --predictions IN/chaos/relations/pred.json --resamples 2 -o OUT",
        "-o:folder",
    ),
    ("evaluate", "grounding"): _case(
        "--truth IN/chaos/grounding/test_proc.json --predictions IN/chaos/grounding/pred.json --resamples 2 "
        "-o OUT",
        "-o:folder",
    ),
    ("evaluate", "sound"): _case(
        "--truth IN/chaos/sound/vggss.json --predictions IN/chaos/sound/maps.npz --resamples 2 -o OUT",
        "-o:folder",
    ),
    ("evaluate", "corner-cases"): _case(
        "--truth IN/coda/corner_case.json --predictions IN/coda/proposals.json --agnostic --resamples 2 -o OUT",
        "-o:folder",
    ),
    ("calibration",): _case(f"IN/ped/action.csv {_SCORED} -o OUT", "-o:folder"),
    ("compare",): _case("IN/runs/ped IN/runs/ped2 --resamples 5 --html OUT", "--html:file"),
    ("cross-dataset",): _case(
        "--models logistic --domains jaad-all=IN/streets/one,crossing@1=IN/streets/two --seeds 1 --resamples 0 "
        "--out OUT",
        "--out:folder",
        torch=True,
    ),
    ("reproduce",): _case(
        "iv2024 --data IN/data --no-baselines --resamples 2 --html OUT", "--html:file", workers=True
    ),
    ("report",): _case("IN/runs/road -o OUT", "-o:file"),
}


def commands() -> Iterator[tuple[str, ...]]:
    """The words of every command of the app, aliases left out."""
    from cyclopts import App

    from roadaware.cli.app import build_app

    def walk(group: App, before: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for name in group:
            if name.startswith("-") or name in ALIASES:
                continue
            below = group[name]
            if below.default_command is not None:
                yield (*before, name)
            yield from walk(below, (*before, name))

    return walk(build_app("*"), ())


def words_for(name: tuple[str, ...], inputs: Path, out: Path | str) -> list[str]:
    """The words of a command that works, with its inputs and its output in place."""
    here = f"{inputs}/"
    return [*name, *(word.replace("IN/", here).replace("OUT", str(out)) for word in CASES[name].words)]


def write_inputs(root: Path, *, torch: bool = True) -> Path:
    """Write everything that `CASES` name below `IN`.

    Args:
        root: a folder, made if need be; one that holds them already stays as it is.
        torch: also weights and folders of networks.
    """
    root.mkdir(parents=True, exist_ok=True)
    if not (root / "tables.done").exists():
        _write_tables(root)
        (root / "tables.done").touch()
    if torch and not (root / "networks.done").exists():
        _write_networks(root)
        (root / "networks.done").touch()
    return root


def _run(line: str) -> None:
    from roadaware.cli import main

    with contextlib.redirect_stdout(io.StringIO()):
        code = main([*line.split(), "-q"])
    if code:
        raise RuntimeError(f"{line}: {code}")


def _write_tables(root: Path) -> None:
    from event_files import write_events
    from planted_kitti import planted_kitti
    from planted_unknowns import planted_detections, planted_pictures, planted_proposals
    from small_files import write_files
    from street import street
    from test_evaluate_events_command import write_ucf24

    from roadaware.demo_data import write_demo
    from roadaware.demo_data.chaos import write_chaos
    from roadaware.demo_data.corner_files import write_corner_demo
    from roadaware.scenes.store import save

    for name in ("ped", "events", "ucf", "runs", "recipes", "data", "films", "coda"):
        (root / name).mkdir()
    write_files(root / "ped", people=12)
    write_files(root / "ped", "intention", people=12)
    _write_tracks(root / "tracks.csv")
    write_events(root / "events")
    (root / "events" / "rules.txt").write_text("not Car not Cyc\nPushObj not Mov Ped\n", encoding="utf-8")
    write_demo(root / "jaad")
    shutil.copytree(root / "jaad", root / "data" / "jaad")
    _zipped(root / "jaad", root / "jaad.zip")
    write_chaos(root / "chaos", videos=4)
    write_corner_demo(root / "coda", pictures=8)
    write_ucf24(root / "ucf" / "annotations.pkl")
    planted_kitti(root / "kitti", 2)
    with (root / "kitti" / "training" / "label_2" / "000000.txt").open("a") as labels:
        labels.write("Pedestrian 0.00 0 0.2 10.0 5.0 14.0 18.0 1.75 0.6 0.5 1.8 1.6 8.0 0.0\n")
    for seed, (name, count) in enumerate((("home", 8), ("away", 3))):
        scenes = planted_pictures(root / name / "pictures", count, seed=seed)
        save(scenes, root / name / "tables")
        save(planted_detections(scenes, seed), root / name / "found")
        save(planted_proposals(scenes), root / name / "proposals")
    for seed, name in enumerate(("one", "two")):
        save(street(people=6, seed=seed), root / "streets" / name)
    home, streets, small = root / "home", root / "label/streets", "--fps 4 --size 64x48 --processes 1"
    scored = f"--samples {root}/ped/action_samples.csv --task action --resamples 5"
    road = f"--truth {root}/events/road.json --predictions {root}/events/predictions --kinds agent"
    said = f"--truth {root}/chaos/grounding/test_proc.json --predictions {root}/chaos/grounding/pred.json"
    kinds = "--classes traffic_cone dog debris barrier"
    for line in (
        f"rescore fit-energy --truth {home}/tables --detections {home}/found --out {root}/energy.npz",
        f"link {root}/events/detections --truth {root}/events/road.json --out {root}/events/linked",
        f"check example {root}/rounds",
        f"label example {streets}",
        f"label export {streets}/proposals --videos {streets}/scenes --all {kinds} --out {root}/label/tasks",
        f"label import {root}/label/tasks {streets}/corrected.json -o {root}/label/labels",
        f"simulate --preset road --seconds 0.5 {small} --out {root}/synthetic/road",
        f"evaluate pedestrians --scores {root}/ped/action.csv {scored} -o {root}/runs/ped",
        f"evaluate pedestrians --scores {root}/ped/action.csv {scored} -o {root}/runs/ped2",
        f"evaluate road {road} --resamples 5 -o {root}/runs/road",
        f"evaluate grounding {said} --resamples 5 -o {root}/runs/grounding",
    ):
        _run(line)
    (root / "recipes/steady.yaml").write_text(json.dumps(_recipe(root)))
    _write_film(root / "films/drive.mp4")
    _write_proposals(root)


def _zipped(folder: Path, target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder.parent))


def _recipe(root: Path) -> dict[str, Any]:
    return {
        "name": "tiny",
        "task": "action",
        "seeds": [0],
        "network": {
            "name": "biped",
            "fields": {"width": 6, "embed": 4, "decode": 6, "filters": [2]},
            "inputs": ["boxes:last", "boxes"],
        },
        "samples": {"reader": "saved", "config": "reference", "root": str(root / "streets/one")},
        "schedule": {"epochs": 1, "optimizer": "adamw", "lr": 0.01},
        "threads": 1,
        "batch": 32,
    }


def _write_tracks(path: Path) -> None:
    """A person who walks for a second, as the csv of a tracker."""
    rows = [f"{frame},7,{300 + 5 * frame},400,60,160" for frame in range(30)]
    path.write_text("\n".join(["frame,track_id,x,y,w,h", *rows]) + "\n")


def _write_film(path: Path) -> None:
    import numpy as np

    from roadaware.io.video import VideoWriter

    with VideoWriter(path, 64, 48, 12.0) as film:
        for number in range(8):
            picture = np.full((48, 64, 3), 40, np.uint8)
            picture[8:24, 3 * number : 3 * number + 16] = 220
            film.write(picture)


def _write_proposals(root: Path) -> None:
    import polars as pl

    from roadaware.datasets import read
    from roadaware.scenes.store import save
    from roadaware.scenes.tables import Meta, Predictions

    videos = read("kitti", root / "kitti", cache=False).videos["video"].to_list()
    boxes = pl.DataFrame(
        {
            "box": range(len(videos)),
            "video": videos,
            "frame": [0] * len(videos),
            "x1_px": [10.0] * len(videos),
            "y1_px": [5.0] * len(videos),
            "x2_px": [30.0] * len(videos),
            "y2_px": [30.0] * len(videos),
            "score": [0.5] * len(videos),
            "corner_case": [True] * len(videos),
        }
    )
    save(Predictions(boxes=boxes, meta=Meta(dataset="KITTI")), root / "proposals")


def _write_networks(root: Path) -> None:
    import torch

    import tiny_hub
    import tiny_poses
    from roadaware.models import create
    from roadaware.models.retinanet3d.config import default
    from roadaware.models.weights import save_detector

    torch.set_num_threads(1)
    torch.manual_seed(0)
    kinds = {"agent": ("Ped", "Car"), "action": ("Stop", "Mov")}
    small = {"stage_widths": (8, 8, 8, 8), "stage_blocks": (1, 1, 1, 1), "width": 8, "head_layers": 1}
    config = default(backbone="compact", causal=True, short_side_px=64, prior=0.1, **small)
    network = create("retinanet3d-compact", config=config, n_classes=5, n_av=2)
    tiny_poses.save_tiny_poses(root / "poses.safetensors")
    save_detector(root / "tiny.safetensors", network, kinds, ("AV-Stop", "AV-Mov"))
    for name, write in (("segformer", tiny_hub.write_segformer), ("clip", tiny_hub.write_clip)):
        write(root / "hub" / name)
