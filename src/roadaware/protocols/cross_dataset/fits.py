"""Domains, pedestrians of one origin cut into samples once, and fits, one model trained on one domain."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from roadaware import config as configs
from roadaware.arrays import Floats, Ints
from roadaware.datasets import read
from roadaware.errors import InputError, RoadawareError, UsageError
from roadaware.io.files import write_atomically
from roadaware.io.parallel import Workers
from roadaware.io.sources import read_file
from roadaware.models import CROSSING, get_crossing_entry, load_model_class
from roadaware.models.crossing.uncertainty_config import DoubtConfig
from roadaware.protocols.cross_dataset.config import TESTED, AwayStudy, Fit, read_study_json
from roadaware.scenes.sampling import get_protocol, sample
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.store import open_scenes, save
from roadaware.scenes.tables import Scenes
from roadaware.simulator.config import build_scene_config
from roadaware.simulator.generate import Kept, Order, generate_scenes
from roadaware.training.pedestrians.recipe import (
    LossRecipe,
    NetworkRecipe,
    PedestrianRecipe,
    SamplesRecipe,
)
from roadaware.training.recipe import ScheduleRecipe

if TYPE_CHECKING:
    from roadaware.models.crossing.predictor import Predictor
    from roadaware.tasks.pedestrians import Examples
    from roadaware.training.pedestrians.heads import Fold
    from roadaware.training.pedestrians.samples import Material


DOMAINS, CUT, MADE, FACTS = "domains", "samples", "made", "facts.json"
FPS = 30.0
"""Times to event are counted in frames, as JAAD and PIE have them."""
SPLITS = ("train", "val", "test")
_READ = {
    "jaad-behaviour": ("jaad", "jaad-behaviour-action@iv2022", "JAAD, pedestrians with behaviour tags"),
    "jaad-all": ("jaad", "jaad-action@iv2022", "JAAD, all pedestrians"),
    "pie": ("pie", "pie-action@iv2022", "PIE"),
}
_SIMULATED = "jaad-action@iv2022"
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Domain:
    """Source of a domain.

    Args:
        name: in the study.
        reader: of its annotations.
        root: where they lie; None for what is to be made.
        protocol: how it is cut.
        what: it is, in words.
    """

    name: str
    reader: str
    root: Path | None
    protocol: str
    what: str


def parse_domain(name: str, root: str | None, data: Path | None) -> Domain:
    """The domain of a name.

    Args:
        name: of a dataset, or of a preset of the simulator with or without a town: crossing@1+city-b.
        root: where it lies (default: that of its dataset below `data`, or made when it is needed).
        data: folder that holds jaad/ and pie/.

    Raises:
        UsageError: if there is no such domain, or nothing says where its data lie.
    """
    if name in _READ:
        reader, protocol, what = _READ[name]
        if root is None and data is None:
            raise UsageError(
                f"nothing says where {name} lies: give --data or set ROADAWARE_DATA_DIR to the folder that "
                f"holds {reader}/, or write {name}=PATH"
            )
        place = Path(root) if root is not None else Path(data or "") / reader
        return Domain(name, reader, place.absolute(), protocol, what)
    preset, _, town = name.partition("+")

    try:
        config = build_scene_config(preset, town or None)
    except UsageError as error:
        raise UsageError(f"no domain {name}: there are {', '.join(_READ)}, or {error}") from error
    if config.camera.fps != FPS:
        raise UsageError(
            f"{name} has {config.camera.fps:g} frames a second, and times to event are counted in "
            f"thirtieths of a second; take crossing@1"
        )
    what = f"simulator, {config.name}"
    made = None if root is None else Path(root).absolute()
    return Domain(name, "simulator", made, _SIMULATED, what)


def prepare(
    domain: Domain, out: Path, config: str, scenes: int, workers: Workers, progress: Progress | None = None
) -> dict[str, Any]:
    """Cut a domain into samples and keep them below the study's folder, unless they are there.

    Args:
        domain: which.
        out: folder of the study.
        config: of the protocol, reference or default.
        scenes: how many to make, of a domain that is made.
        workers: that make scenes.
        progress: called with the number of scenes made.

    Returns:
        facts: `what` it is, `protocol`, `root`, `samples` and `positives` of test, and by split
        `pedestrians`, `samples` and `positives`.

    Raises:
        InputError: if the annotations cannot be read or cut, or a split shows one label alone.
        UsageError: if the folder holds the domain cut otherwise.
    """
    home = out / DOMAINS / domain.name
    asked: dict[str, Any] = {
        "root": None if domain.root is None else str(domain.root),
        "protocol": domain.protocol,
    }
    asked |= {"config": config, "scenes": scenes if domain.root is None else None}
    if (home / FACTS).is_file():
        record = read_study_json(home / FACTS)
        differ = [f"{key} {record.get(key)}" for key in asked if record.get(key) != asked[key]]
        if differ:
            raise UsageError(
                f"{out} holds samples of {domain.name} with another {', '.join(differ)}; name another folder"
            )
        return record
    protocol = get_protocol(domain.protocol, "reference" if config == "reference" else "default")
    whole = _open_scenes(domain, home, scenes, workers, progress)
    cut = _slim(sample(whole, protocol))
    facts = {"what": domain.what, **asked, "protocol_digest": configs.digest(protocol), **_counts(cut)}
    home.mkdir(parents=True, exist_ok=True)
    save(cut, home / CUT, overwrite=True)
    _write_tested(cut, out / TESTED / f"{domain.name}.parquet")
    # Written last: where the facts are, the samples are whole.
    write_atomically(home / FACTS, (json.dumps(facts, indent=2) + "\n").encode())
    return facts


def load_material(out: Path, name: str) -> Material:
    """The samples of a domain that was prepared, as training takes them; imports torch."""
    from roadaware.training.pedestrians.samples import Material

    cut = open_scenes(out / DOMAINS / name / CUT)
    record = read_study_json(out / DOMAINS / name / FACTS)
    protocol = get_protocol(record["protocol"], record["config"])
    return Material(cut, cut, protocol, tuple(cut.meta.vocabularies["action"]))


def _open_scenes(
    domain: Domain, home: Path, scenes: int, workers: Workers, progress: Progress | None
) -> Scenes:
    root = domain.root
    if root is None:
        root = home / MADE
        _make(domain, root, scenes, workers, progress)
    if (root / "meta.json").is_file():
        return open_scenes(root)
    return read(domain.reader, root)


def _make(domain: Domain, root: Path, scenes: int, workers: Workers, progress: Progress | None) -> None:
    preset, _, town = domain.name.partition("+")
    # The samples hold boxes alone, so that sweeps and sound would be made for nothing.
    config = replace(build_scene_config(preset, town or None), lidar=None, sound=False)

    def shown(done: int, total: int) -> None:
        if progress is not None:
            progress(done, total, f"scenes of {domain.name}")

    root.parent.mkdir(parents=True, exist_ok=True)
    generate_scenes(Order(config, 0, scenes, Kept.tables_alone()), root, workers=workers, progress=shown)


def _slim(cut: Scenes) -> Scenes:
    """The samples with what they look at: their own tubes and boxes, and the frames of their videos."""
    tubes = cut.tubes.join(cut.samples.select("tube").unique(), on="tube", how="semi", maintain_order="left")
    if "kind" in tubes.columns:
        tubes = tubes.filter(pl.col("kind").is_null())
    boxes = cut.boxes.join(tubes.select("tube"), on="tube", how="semi", maintain_order="left")
    boxes = boxes.select("box", "video", "frame", "tube", *CORNERS)
    videos = cut.videos.join(cut.samples.select("video").unique(), on="video", how="semi")
    frames = cut.frames.join(videos.select("video"), on="video", how="semi", maintain_order="left")
    return Scenes(
        videos=videos,
        frames=frames,
        boxes=boxes,
        tubes=tubes,
        samples=cut.samples,
        meta=replace(cut.meta, vocabularies={"action": cut.meta.vocabularies["action"]}, composites={}),
    )


def _counts(cut: Scenes) -> dict[str, Any]:
    """What there is of each split.

    Raises:
        InputError: if one shows a single label, by which nothing is learnt or ranked.
    """
    found: dict[str, Any] = {}
    split = pl.col("split").cast(pl.String)
    for name in SPLITS:
        held = cut.samples.filter(split == name)
        positives = int((held["label"] == 1).sum())
        if not 0 < positives < len(held):
            raise InputError(
                f"all {len(held)} samples of split '{name}' have one label: nothing can be learnt or ranked",
                hint="a simulated domain needs more scenes (--scenes)",
            )
        found[name] = {
            "pedestrians": held["tube"].n_unique(),
            "samples": len(held),
            "positives": positives,
        }
    test = found["test"]
    return {"samples": test["samples"], "positives": test["positives"], **found}


def _write_tested(cut: Scenes, path: Path) -> None:
    from roadaware.tasks.pedestrians import build_examples

    asked = build_examples(cut, "test")
    frame = pl.DataFrame(
        {
            "sample": asked.sample,
            "video": asked.video,
            "pedestrian": asked.pedestrian,
            "tte_frames": asked.tte_frames,
            "truth": asked.truth,
        }
    )
    stream = io.BytesIO()
    frame.write_parquet(stream)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, stream.getvalue())


def refuse_absent(wanted: Sequence[Domain], out: Path) -> None:
    """Refuse domains whose path does not exist; those that were cut before need it no more.

    Raises:
        InputError: if there are any; it names all of them.
    """
    absent = [
        each
        for each in wanted
        if each.root is not None
        and not each.root.exists()
        and not (out / DOMAINS / each.name / FACTS).is_file()
    ]
    if not absent:
        return
    left = [each.name for each in wanted if each not in absent]
    without = f", or go without: --domains {','.join(left)}" if left else ""
    raise InputError(
        "; ".join(f"{each.name} should lie in {each.root}, and nothing is there" for each in absent),
        hint=f"say where with NAME=PATH or --data{without}",
    )


def describe_error(error: Exception) -> str:
    """Why something did not work, in one line: what was found; what to do about it.

    >>> describe_error(InputError("samples need boxes", where="pie", hint="read them too"))
    'pie: samples need boxes; read them too'
    """
    text = str(error) if isinstance(error, RoadawareError) else f"{type(error).__name__}: {error}"
    first, *more = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    for line in more:
        first += f" {line}" if first.endswith((".", ":", ";", ",")) else f"; {line}"
    return first


NETWORK, ARRAYS, RECIPE = "model.safetensors", "model.npz", "recipe.json"
_material = lru_cache(maxsize=8)(load_material)


def get_model_path(fit: Fit, out: Path) -> Path:
    """Path of the model of a fit."""
    return out / fit.place / (NETWORK if fit.model in CROSSING else ARRAYS)


def check_recipe(fit: Fit, study: AwayStudy, out: Path) -> bytes:
    """The recipe of a fit, as its folder keeps it, where the folder has none or the same.

    Args:
        fit, study, out: as of `make`.

    Raises:
        UsageError: if a model is there that was made by another one.
    """
    path = get_model_path(fit, out)
    made_of = {**study.fixed, "fields": study.fields.get(fit.model, {}), "fit": configs.to_dict(fit)}
    recipe = (json.dumps(made_of, indent=2, sort_keys=True) + "\n").encode()
    # A model without its recipe says no more than one of another.
    kept = path.with_name(RECIPE)
    if path.is_file() and not (kept.is_file() and read_file(kept) == recipe):
        raise UsageError(f"{path.parent} holds a fit of another recipe; name another folder with --out")
    return recipe


def make(fit: Fit, study: AwayStudy, out: Path) -> None:
    """Fit and keep a model, unless it is there.

    Args:
        fit: which.
        study: says how.
        out: folder of the study, with the domain's samples.

    Raises:
        UsageError: if the folder holds the same fit under another recipe, or the network cannot be made.
        InputError: if there are no samples to learn from, or what it goes on from is missing.
        DivergedFitError: if the loss is no number any more.
    """
    path = get_model_path(fit, out)
    recipe = check_recipe(fit, study, out)
    if path.is_file():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path.with_name(RECIPE), recipe)
    held = _material(out, fit.domain)
    if fit.model in CROSSING:
        _network(fit, study, out, held, path)
    else:
        # A model on hand features of boxes; no vehicle, since domains record it differently
        from roadaware.tasks.pedestrians import build_examples

        kind = load_model_class(fit.model)
        fields = {"labels": len(held.labels), "vehicle": False, "balanced": (study.learning.balance > 0,)}
        fields |= study.fields.get(fit.model, {})
        kind.create(**fields).fit(build_examples(held.cut, "train"), build_examples(held.cut, "val")).save(
            path
        )


def build_recipe(fit: Fit, study: AwayStudy, samples: int, weights: str = "") -> PedestrianRecipe:
    """The recipe of a fit of a network.

    Args:
        fit: which.
        study: says how.
        samples: to learn from, which decide how many epochs the updates are.
        weights: what it goes on from.
    """
    how = study.learning
    # Epochs follow from the number of updates, which is the same for every training set.
    steps = max(1, samples // min(how.batch, samples))
    uncertainty = {
        "none": DoubtConfig(),
        "last-dropout": DoubtConfig("last-dropout", rate=how.last_rate, passes=how.passes),
        "last-flipout": DoubtConfig("last-flipout", passes=how.passes),
    }[fit.kind]
    return PedestrianRecipe(
        name=fit.model,
        seeds=(fit.seed,),
        network=NetworkRecipe(
            fit.model,
            study.size if hasattr(get_crossing_entry(fit.model).config_class, "small") else "published",
            study.fields.get(fit.model, {}),
            study.inputs,
            weights,
        ),
        samples=SamplesRecipe(reader="saved", root=fit.domain, config=study.config),
        loss=LossRecipe(balance=how.balance),
        schedule=ScheduleRecipe(
            epochs=how.updates / steps,
            optimizer="adamw",
            lr=how.lr,
            weight_decay=how.weight_decay,
            decay="cosine",
            decay_all=False,
            bias_lr=1.0,
            clip_norm=1.0,
        ),
        doubt=uncertainty,
        batch=how.batch,
        flip=how.flip,
        choose=how.choose,
    )


def _network(fit: Fit, study: AwayStudy, out: Path, held: Material, path: Path) -> None:
    from roadaware.models.crossing.predictor import Predictor
    from roadaware.training.pedestrians.fit import Fitter
    from roadaware.training.pedestrians.run import build_crossing_network

    before = "" if fit.before is None else str(get_model_path(fit.before, out))
    if before and not Path(before).is_file():
        raise InputError(f"{fit.before} did not come to an end, so nothing goes on from it")
    folds = {split: load_fold(out, fit.domain, split, study.inputs) for split in ("train", "val")}
    recipe = build_recipe(fit, study, len(folds["train"]), before)
    network = build_crossing_network(recipe, folds["train"].inputs.shapes, len(held.labels), fit.seed)
    fitted = Fitter(network, folds["train"], folds["val"], recipe, fit.seed).fit()
    facts = {
        "domain": fit.trained_on,
        "protocol_config": configs.to_dict(held.protocol),
        "seed": fit.seed,
        "best_epoch": fitted.best,
        "criterion": recipe.choose,
        "validation": fitted.curve[fitted.best - 1].worth,
    }
    Predictor(network, fit.model, "action", held.labels, facts, doubt=recipe.doubt).save(path)


@lru_cache(maxsize=32)
def load_fold(out: Path, domain: str, split: str, inputs: tuple[str, ...]) -> Fold:
    """Samples of a domain as networks take them.

    Args:
        out: folder of the study.
        domain: its name.
        split: train, val or test.
        inputs: their names.
    """
    from roadaware.training.pedestrians.samples import build_fold

    recipe = PedestrianRecipe(samples=SamplesRecipe(reader="saved", root=domain))
    return build_fold(_material(out, domain), split, inputs, recipe)


# Asking: what a fitted model says of a domain's samples, with each uncertainty method.

Answers = Callable[[str, str], Floats]
_NEAREST = 1e-7
"""Probabilities of tabular models are kept this far from 0 and 1 before they become logits."""


def load_predictor(fit: Fit, uncertainty: str, study: AwayStudy, out: Path) -> Answers:
    """A fitted model, to be asked about the samples of domains.

    Args:
        fit: that was made.
        uncertainty: the uncertainty method.
        study: says what networks look at, and how often they are asked.
        out: folder of the study.

    Returns:
        a function from a domain's name and a split to (n,) probabilities of crossing. It raises InputError if
        the domain lacks what the model looks at.

    Raises:
        UsageError: if a network drops nothing and should.
    """
    if fit.model not in CROSSING:
        return _predict_tabular(fit, uncertainty, out)
    network = _open_predictor(fit, uncertainty, study, out)

    def answers(domain: str, split: str) -> Floats:
        return network.probabilities(load_fold(out, domain, split, study.inputs).inputs)[:, 0]

    return answers


def _open_predictor(fit: Fit, uncertainty: str, study: AwayStudy, out: Path) -> Predictor:
    from roadaware.models.crossing.ensemble import apply_mc_dropout, calibrate_predictor
    from roadaware.models.crossing.predictor import Predictor

    held = Predictor.open(get_model_path(fit, out))
    if uncertainty == "mc-dropout":
        return apply_mc_dropout(held, study.learning.passes)
    if uncertainty == "temperature":
        known = load_fold(out, fit.domain, "val", study.inputs)
        return calibrate_predictor(held, known.inputs, known.truth.numpy(), fit.seed)
    return held


def _predict_tabular(fit: Fit, uncertainty: str, out: Path) -> Answers:
    from scipy.special import expit, logit

    from roadaware.statistics.calibration import fit_temperature

    model, heat = load_model_class(fit.model).open(get_model_path(fit, out)), 1.0
    if uncertainty == "temperature":
        known = _examples(out, fit.domain, "val")
        before = model.predict(known)[:, :1].clip(_NEAREST, 1 - _NEAREST)
        heat = fit_temperature(logit(before), known.truth)

    def answers(domain: str, split: str) -> Floats:
        said = model.predict(_examples(out, domain, split))[:, 0]
        # Without a temperature, probabilities of 0 and 1 stay what they are.
        if heat == 1.0:
            return np.asarray(said, dtype=np.float64)
        return np.asarray(expit(logit(said.clip(_NEAREST, 1 - _NEAREST)) / heat), dtype=np.float64)

    return answers


def read_validation_truth(out: Path, domain: str) -> Ints:
    """(n,) labels of a domain's validation samples, in the order in which models are asked about them."""
    return _examples(out, domain, "val").truth


@lru_cache(maxsize=16)
def _examples(out: Path, domain: str, split: str) -> Examples:
    from roadaware.tasks.pedestrians import build_examples

    found = build_examples(load_material(out, domain).cut, split)
    # The labels of the test set are withheld from whoever is asked.
    return found if split != "test" else replace(found, truth=np.full(len(found), -1))
