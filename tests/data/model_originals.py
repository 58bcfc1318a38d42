"""Tiny models and recipes that mutants are made of, and what is done with each; imports torch."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
PICTURE = np.random.default_rng(0).integers(0, 255, (48, 64, 3), dtype=np.uint8)
TEXTS = ("tyre", "dog")


def write_originals(target: str, folder: Path) -> None:
    """What the mutants of a target are made of.

    Args:
        target: of `model_mutants.TARGETS`.
        folder: to be made.
    """
    folder.mkdir(parents=True)
    _WRITERS[target](folder)


def _recipes(folder: Path) -> None:
    for n, path in enumerate(sorted(CONFIGS.rglob("*.yaml"))):
        shutil.copy(path, folder / f"{n:02d}-{path.name}")


def _facts(folder: Path) -> None:
    import torch

    from roadaware.models import create
    from roadaware.models.retinanet3d.config import compact
    from roadaware.models.weights import save_detector

    small = {"stage_widths": (8, 8, 8, 8), "stage_blocks": (1, 1, 1, 1), "width": 8, "head_width": 8}
    torch.manual_seed(0)
    for name, fields in (("compact", {}), ("clip", {"causal": False})):
        config = compact(**small, **fields, head_layers=1, short_side_px=32)
        network = create("retinanet3d-compact", config=config, n_classes=3, n_av=2)
        save_detector(
            folder / f"{name}.safetensors", network, {"agent": ("Car", "Ped")}, ("Stop", "Move"),
            {"linking": {"min_iou": 0.1}},
        )  # fmt: skip


def _predictors(folder: Path) -> None:
    import torch

    from roadaware.corner_cases.scorers import (
        EnergyConfig,
        EnergyModel,
        Fitted,
        MemoryBank,
        save_fitted,
        sort_fingerprints,
    )
    from roadaware.models import create, get_crossing_entry, load_model_class
    from roadaware.models.crossing.predictor import Predictor
    from roadaware.statistics.distributions import Weibull

    torch.manual_seed(0)
    for name in ("steady", "single-rnn", "transformer-encoder"):
        shapes = (
            {"centre": (8, 2), "motion": (8, 8), "ego:action": (8, 5)}
            if name == "steady"
            else {"boxes": (8, 4)}
        )
        network = create(
            name, config=get_crossing_entry(name).config_class(), shapes=shapes, labels=2, tasks={}
        )
        held = Predictor(network, name, "action", ("no", "yes"), {"protocol": "any"})
        held.save(folder / f"{name}.safetensors")
    rng = np.random.default_rng(0)
    boxes = np.cumsum(rng.random((80, 8, 4)), axis=1) + np.array([0, 0, 50, 80])
    labelled = _samples(boxes, rng.integers(0, 2, 80))
    for name, fields in (("boosting", {"rounds": 4, "step": 2, "leaves": (3,)}), ("logistic", {})):
        load_model_class(name).create(**fields).fit(labelled, labelled).save(folder / f"{name}.npz")
    seen, energy = sort_fingerprints(range(5)), EnergyConfig()
    weibull = Weibull(1.0, 2.0, 0.0)
    save_fitted(folder / "energy.npz", Fitted(EnergyModel(weibull, weibull, energy), seen))
    bank = MemoryBank(rng.random((9, 4)).astype(np.float32), 0.5, 0.1, 2)
    save_fitted(folder / "memory.npz", Fitted(bank, seen))


def _samples(boxes: Any, truth: Any) -> Any:
    n, t = boxes.shape[:2]
    return SimpleNamespace(
        boxes=boxes, vehicle_action=np.zeros((n, t)), width_px=np.full(n, 1920.0),
        height_px=np.full(n, 1080.0), traffic=None, truth=truth,
    )  # fmt: skip


def _folders(folder: Path) -> None:
    import tiny_hub
    import tiny_objects
    from roadaware.models.object_detectors import save_objects

    for name in ("rt_detr", "d_fine"):
        model = tiny_objects.tiny_model(name, ["car", "person"])
        save_objects(folder / name, model, ((64, 64), [0.5] * 3, [0.2] * 3), "agent")
    for name, write in (
        ("segformer", tiny_hub.write_segformer), ("mask2former", tiny_hub.write_mask2former),
        ("clip", tiny_hub.write_clip), ("owlv2", tiny_hub.write_owl), ("grounding", tiny_hub.write_grounding),
    ):  # fmt: skip
        write(folder / name)
    whole = folder / "segformer" / "model.safetensors"
    (folder / "sharded").mkdir()
    for path in (folder / "segformer").iterdir():
        shutil.copy(path, folder / "sharded" / path.name)
    (folder / "sharded" / whole.name).rename(folder / "sharded" / "model-1.safetensors")
    from safetensors import safe_open

    with safe_open(whole, framework="pt") as held:
        names = ", ".join(f'"{key}": "model-1.safetensors"' for key in held.keys())  # noqa: SIM118
    (folder / "sharded" / "model.safetensors.index.json").write_text(
        f'{{"metadata": {{}}, "weight_map": {{{names}}}}}'
    )


_WRITERS = {"recipes": _recipes, "facts": _facts, "predictors": _predictors, "model-folders": _folders}


def open_and_ask(path: Path) -> str:
    """Open a mutant as the command line does, and ask it once; how it ended.

    Args:
        path: of the mutant.
    """
    if path.suffix == ".yaml":
        return _ask_recipe(path)
    if path.is_dir():
        return _ask_folder(path)
    return _ask_file(path)


def _ask_recipe(path: Path) -> str:
    from roadaware.models import MODELS
    from roadaware.training.crowd.recipe import CrowdRecipe
    from roadaware.training.pedestrians.recipe import PedestrianRecipe, check_network
    from roadaware.training.recipe_files import read_fields, read_recipe

    if "task" not in (fields := read_fields(path)) and "model" not in fields and "data" not in fields:
        return "fields"
    found = read_recipe(path)
    if isinstance(found, PedestrianRecipe):
        if found.network.name not in MODELS:
            check_network(found)
        return "recipe of a predictor"
    if isinstance(found, CrowdRecipe):
        return "recipe of a network of crowds"
    from roadaware.training.build import build_network_config
    from roadaware.training.recipe import REFINER

    if not found.model.is_objects and found.model.name != REFINER:
        build_network_config(found.model)
    return "recipe of a detector"


def _ask_file(path: Path) -> str:
    from roadaware.corner_cases.scorers import EnergyModel, open_fitted
    from roadaware.models import load_model_class
    from roadaware.models.crossing.inputs import Held, InputSet
    from roadaware.models.crossing.predictor import Predictor, is_predictor
    from roadaware.models.detector import read_advice, read_training_data
    from roadaware.models.loading import open_stream

    if path.stem in ("compact", "clip"):
        read_advice([path]), read_training_data([path])
        detector = open_stream([path])
        for _ in range(2):
            detector.step(PICTURE)
        return "opened"
    if path.suffix == ".safetensors":
        is_predictor(path)
        held = Predictor.open(path)
        n = 2
        shapes = held.network.shapes
        columns = {name: Held(np.zeros((n, *shape), np.float32)) for name, shape in shapes.items()}
        held.probabilities(InputSet(columns, n))
        return "opened"
    if path.stem in ("energy", "memory"):
        model = open_fitted(path).model
        if isinstance(model, EnergyModel):
            model.unknown_share(np.linspace(-5, 5, 9))
        else:
            model.anomaly(np.ones((2, 4), np.float32))
        return "opened"
    boxes = np.cumsum(np.ones((4, 8, 4)), axis=1) + np.array([0, 0, 50, 80])
    load_model_class(path.stem).open(path).predict(_samples(boxes, np.zeros(4, np.int64)))
    return "opened"


def _ask_folder(path: Path) -> str:
    from roadaware.models.loading import open_videos
    from roadaware.models.object_detectors import open_segmenter
    from roadaware.models.open_vocabulary import open_namer

    if path.name in ("segformer", "mask2former", "sharded"):
        open_segmenter(path).segment([PICTURE])
    elif path.name == "clip":
        open_namer(path, TEXTS).scores([PICTURE])
    else:
        texts = TEXTS if path.name in ("owlv2", "grounding") else ()
        list(open_videos([path], texts=texts).follow([PICTURE]))
    return "opened"
