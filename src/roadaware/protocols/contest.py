"""A fair contest of crossing predictors: each tries as many configurations on validation, and test is asked once."""

from __future__ import annotations

import io
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import polars as pl

from roadaware import config as configs
from roadaware.arrays import Floats, Ints
from roadaware.errors import DamagedError, InputError, UsageError, raise_interrupt
from roadaware.io.files import write_atomically
from roadaware.io.folders import encode_json, hold_folder
from roadaware.io.json import parse
from roadaware.io.parquet import read_parquet
from roadaware.metrics.pedestrians import collect_sample_scores
from roadaware.metrics.scores import SampleScores
from roadaware.models.crossing.hazard_trees import HazardTrees, HazardTreesConfig
from roadaware.models.crossing.inputs import InputSet
from roadaware.models.crossing.tabular import limit_to_one_thread
from roadaware.protocols.crossing_time import fit_same_classifier
from roadaware.scenes.sampling import split_samples
from roadaware.scenes.tables import Scenes, build_sample_predictions
from roadaware.tasks.crossing_inputs import build_inputs
from roadaware.tasks.crossing_time import EDGES_S, TimedTracks, collect_times, estimate_lane_time, name_spans
from roadaware.tasks.crossing_tracks import PUBLISHED_FPS, Moments, survive
from roadaware.training.pedestrians import results
from roadaware.training.pedestrians.failures import format_error
from roadaware.training.pedestrians.recipe import NetworkRecipe, PedestrianRecipe, SamplesRecipe
from roadaware.training.pedestrians.results import digest_samples, keep, score_probabilities

if TYPE_CHECKING:
    from roadaware.training.pedestrians.recipe import PedestrianRecipe
    from roadaware.training.pedestrians.samples import Material

Progress = Callable[[int, int, str], None]
Space = Mapping[str, tuple[str, ...]]

FORMAT = "roadaware-contest"
PROTOCOL = "jaad-action@iv2024"
CRITERION: Final = "average_precision"
"""What every configuration is chosen by, on validation."""
WITHIN_S = 3.0
"""Trees of the time answer who crosses by the probability of an event within this: the protocol asks up to 3 s before it."""
RATE_FPS, FRAMES = 30.0, 15
_LONGEST_S = 10.0
"""Times to the middle are cut here: behind it they are all far."""
STUDY, CHOICES, TEST = "study.json", "choices.json", "test.parquet"
_BOXES_AND_CAR, _AND_TRAFFIC = '[boxes, "ego:action"]', '[boxes, "ego:action", traffic]'
_NETWORK: Space = {
    "schedule.lr": ("2.0e-3", "5.0e-4", "1.0e-3", "5.0e-3"),
    "loss.balance": ("1", "0", "0.5"),
    "schedule.weight_decay": ("0", "0.05", "0.3"),
    "network.inputs": (_AND_TRAFFIC, _BOXES_AND_CAR),
}
_TREES: Space = {
    "rounds": ("120", "60", "240"),
    "learning_rate": ("0.05", "0.1", "0.03"),
    "leaves": ("24", "8", "48"),
    "penalty": ("20.0", "5.0", "80.0"),
    "columns": ("0.2", "0.5", "1.0"),
    "inputs": ("[history]", '[history, "ego:action", traffic]'),
}


@dataclass(frozen=True)
class Contestant:
    """A predictor and the configurations that it may try.

    Args:
        kind: how it is fitted: a recipe of `train` (networks and models on hand features), trees on two seconds of boxes
            that learn when (`time`) or who (`history`), or the rule of constant velocity.
        space: field to its candidates as YAML; the first of each is the configuration that is tried first.
        recipe: bundled, of the kind `recipe`.
        fixed: fields of the recipe that are the same in all configurations.
    """

    kind: Literal["recipe", "time", "history", "rule"]
    space: Space
    recipe: str = ""
    fixed: tuple[str, ...] = ()


def _small(recipe: str) -> Contestant:
    return Contestant("recipe", _NETWORK, recipe, ("network.size=small",))


CONTESTANTS: dict[str, Contestant] = {
    "constant velocity": Contestant(
        "rule", {"middle": ("0.3333", "0.1", "0.2", "0.25", "0.4", "0.5", "0.6", "0.7", "0.05", "0.15")}
    ),
    "logistic": Contestant(
        "recipe",
        {
            "network.fields.penalties": ("[1.0]", "[0.001]", "[0.01]", "[0.1]", "[10.0]"),
            "network.fields.balanced": ("[false]", "[true]"),
            "network.fields.traffic": ("true", "false"),
        },
        "logistic-traffic-jaad",
    ),
    "boosting": Contestant(
        "recipe",
        {
            "network.fields.leaves": ("[15]", "[7]", "[31]"),
            "network.fields.learning_rate": ("0.05", "0.02", "0.1"),
            "network.fields.least_in_leaf": ("20", "50", "100"),
            "network.fields.traffic": ("true", "false"),
        },
        "boosting-traffic-jaad",
    ),
    "history trees": Contestant("history", _TREES),
    "hazard trees": Contestant("time", _TREES),
    "steady": Contestant(
        "recipe",
        {
            "schedule.lr": ("1.0e-3", "3.0e-4", "3.0e-3"),
            "network.fields.dropout": ("0.3", "0.1", "0.5"),
            "schedule.weight_decay": ("0.3", "0.05"),
            "loss.consistency": ("10", "0", "1"),
            "network.inputs": ('[centre, motion, "ego:action", traffic]', '[centre, motion, "ego:action"]'),
        },
        "steady-jaad",
    ),
    "single-rnn": _small("single-rnn-jaad"),
    "sfgru": _small("sfgru-jaad"),
    "multi-rnn": _small("multi-rnn-jaad"),
    "stacked-rnn": _small("stacked-rnn-jaad"),
    "hierarchical-rnn": _small("hierarchical-rnn-jaad"),
    "pcpa": _small("pcpa-jaad"),
    "transformer-encoder": _small("transformer-encoder-jaad"),
}
"""By name. Every network is of its small size, where it has one."""


def list_configurations(space: Space, budget: int, seed: int = 0) -> list[dict[str, str]]:
    """So many configurations of a space, each once: the first candidates of all fields, then others by chance.

    Raises:
        UsageError: if the space has fewer.

    >>> list_configurations({"lr": ("1", "2"), "wd": ("0", "3")}, 2)[0]
    {'lr': '1', 'wd': '0'}
    """
    grid = [dict(zip(space, values, strict=True)) for values in itertools.product(*space.values())]
    if not 1 <= budget <= len(grid):
        raise UsageError(f"a budget of {budget} configurations: the smallest space has {len(grid)}")
    others = np.random.default_rng(seed).permutation(len(grid) - 1)[: budget - 1] + 1
    return [grid[place] for place in (0, *others.tolist())]


@dataclass(frozen=True)
class Trial:
    """A configuration and what it is worth on validation.

    Args:
        configuration: field to value, as YAML.
        score: average precision on validation; None where the fit failed.
        cpu_s: seconds of the process that fitting and validation took.
        failed: why there is no score.
    """

    configuration: dict[str, str]
    score: float | None
    cpu_s: float
    failed: str = ""


@dataclass(frozen=True, eq=False)
class Contest:
    """Results.

    Args:
        budget: configurations that each tried.
        trials: by contestant, in the order tried.
        chosen: place of the best among them.
        scores: on test, the mean over seeds of what the chosen configuration says; by contestant.
        rows: columns `training.pedestrians.results.RESULTS`, a row for each contestant, fit and metric.
        seeds: of the chosen configurations of what is not the same for every seed.
    """

    budget: int
    trials: dict[str, list[Trial]]
    chosen: dict[str, int]
    scores: dict[str, SampleScores]
    rows: pl.DataFrame
    seeds: tuple[int, ...]

    @property
    def order(self) -> list[str]:
        """Contestants by their chosen configuration's score on validation, the best first."""
        return sorted(self.trials, key=lambda name: -(self.trials[name][self.chosen[name]].score or 0.0))


@dataclass(frozen=True, eq=False)
class _Data:
    """What all contestants learn from, are chosen by and are asked.

    Args:
        source: name of the reader and path.
        material: samples of the protocol.
    """

    source: tuple[str, str]
    material: Material
    _held: dict[str, Any] = field(default_factory=dict)

    def build(self, split: str, names: Sequence[str]) -> InputSet:
        """Inputs of the samples of a split."""
        key = f"{split} {' '.join(names)}"
        if key not in self._held:
            self._held[key] = build_inputs(self.material.cut, split, list(names))
        found: InputSet = self._held[key]
        return found

    def collect_times(self, names: tuple[str, ...]) -> TimedTracks:
        """All moments of train, which trees learn from, with inputs."""
        key = f"moments {' '.join(names)}"
        if key not in self._held:
            moments = Moments(RATE_FPS, FRAMES)
            self._held[key] = collect_times(
                self.material.cut, self.material.protocol, "train", moments, names
            )
        found: TimedTracks = self._held[key]
        return found

    def truth(self, split: str) -> Scenes:
        """The samples of a split with their answers."""
        return split_samples(self.material.cut, split)


def run_contest(
    scenes_reader: str,
    root: Path,
    out: Path,
    *,
    names: Sequence[str] | None = None,
    budget: int = 8,
    seeds: tuple[int, ...] = (0, 1, 2),
    resamples: int = 1000,
    progress: Progress | None = None,
) -> Contest:
    """Let predictors choose among equally many configurations on validation, then ask the best of each on test, once.

    A configuration is fitted with the first seed, and the best by average precision on validation with all seeds. Test is
    asked when the choices of all stand in the folder, and its answers are kept: the same command reads them again, and
    nobody can be added. Interrupted, the same command goes on.

    Args:
        scenes_reader: of the annotations, such as jaad; `saved` for tables.
        root: their folder or archive.
        out: folder of the contest.
        names: of contestants, of `CONTESTANTS` (default: all).
        budget: configurations that each tries.
        seeds: of the chosen configurations.
        resamples: most weightings of people and videos for intervals; 0 for none.
        progress: called with the fits that are done and their number.

    Raises:
        UsageError: if a name or the budget has no meaning, or the folder holds another contest.
        InputError: if the annotations cannot be read, or all configurations of somebody fail.
        DiskError: if the folder cannot be written to.
    """
    from roadaware.training.pedestrians.samples import load_samples

    chosen_names = list(names or CONTESTANTS)
    unknown = [name for name in chosen_names if name not in CONTESTANTS]
    if unknown or len(set(chosen_names)) < len(chosen_names):
        said = f"nobody is called {', '.join(unknown)}" if unknown else "each is named once"
        raise UsageError(f"contestants: {said}; there are {', '.join(CONTESTANTS)}")
    plans = {name: list_configurations(CONTESTANTS[name].space, budget) for name in chosen_names}
    material = load_samples(SamplesRecipe(scenes_reader, str(root)), "action")
    material = _state_rate(material)
    study = {
        "format": FORMAT, "protocol": PROTOCOL, "samples": digest_samples(material), "criterion": CRITERION,
        "contestants": chosen_names, "budget": budget, "seeds": list(seeds),
    }  # fmt: skip
    with hold_folder(out):
        record = out / STUDY
        if record.is_file() and parse(record.read_text("utf-8"), str(record)) != study:
            raise UsageError(
                f"{out} holds a contest of others, of another budget, or on other samples, and its test is asked once: "
                "name another --output"
            )
        write_atomically(record, encode_json(study).encode())
        data = _Data((scenes_reader, str(root)), material)
        trials = _tune(plans, data, out, seeds[0], progress)
        chosen = {}
        for name, tried in trials.items():
            worth = [-np.inf if trial.score is None else trial.score for trial in tried]
            if not np.isfinite(max(worth)):
                raise InputError(f"{name}: no configuration could be fitted; the first: {tried[0].failed}")
            chosen[name] = int(np.argmax(worth))  # of equal ones the first
        choices = {
            name: {"chosen": chosen[name], "trials": [configs.to_dict(trial) for trial in tried]}
            for name, tried in trials.items()
        }
        write_atomically(out / CHOICES, encode_json(choices).encode())
        answers = _ask_test(trials, chosen, data, out, seeds, progress)
        scores, rows = _judge(answers, trials, chosen, data, resamples)

        keep(out, rows)
    return Contest(budget, trials, chosen, scores, rows, seeds)


def _state_rate(material: Material) -> Material:
    """The material with the published rate of its videos, where annotations do not state one: histories are in seconds."""
    rate = PUBLISHED_FPS.get(material.cut.meta.dataset.lower())
    videos = material.cut.videos
    if rate is None or ("fps" in videos.columns and not videos["fps"].null_count()):
        return material
    return replace(material, cut=material.cut.with_tables(videos=videos.with_columns(fps=pl.lit(rate))))


def _tune(
    plans: Mapping[str, Sequence[dict[str, str]]],
    data: _Data,
    out: Path,
    seed: int,
    progress: Progress | None,
) -> dict[str, list[Trial]]:
    """Every configuration on validation; those that stand in the folder are not fitted again."""
    total, done = sum(map(len, plans.values())), 0
    truth = data.truth("val").samples["label"].cast(pl.Int64).to_numpy()
    found: dict[str, list[Trial]] = {}
    for name, plan in plans.items():
        found[name] = []
        for place, configuration in enumerate(plan):
            folder = out / "trials" / name.replace(" ", "-") / f"{place:02}"
            record = folder / "trial.json"
            if record.is_file():
                trial = configs.from_dict(Trial, parse(record.read_text("utf-8"), str(record)))
                if trial.configuration != configuration:
                    raise DamagedError("holds the trial of another configuration", where=str(record))
            else:
                started, score, why = time.process_time(), None, ""
                try:
                    said = _answer(name, configuration, data, folder, (seed,), "val")[seed]
                    score = score_probabilities("average_precision", said, truth)
                except Exception as error:  # a configuration that cannot be fitted counts as tried
                    raise_interrupt(error)
                    why = format_error(error)
                if score is not None and not np.isfinite(score):
                    score, why = None, "validation has one label only"
                trial = Trial(configuration, score, round(time.process_time() - started, 2), why)
                folder.mkdir(parents=True, exist_ok=True)
                write_atomically(record, encode_json(configs.to_dict(trial)).encode())
            found[name].append(trial)
            done += 1
            if progress is not None:
                progress(done, total, f"configurations, {name}")
    return found


def _ask_test(
    trials: Mapping[str, Sequence[Trial]],
    chosen: Mapping[str, int],
    data: _Data,
    out: Path,
    seeds: tuple[int, ...],
    progress: Progress | None,
) -> dict[str, dict[int, Floats]]:
    """Of each contestant and seed the (n,) probabilities of the test samples, asked once."""
    samples = data.truth("test").samples
    path = out / TEST
    if not path.is_file():
        parts = []
        for done, name in enumerate(trials):
            folder = out / "trials" / name.replace(" ", "-") / f"{chosen[name]:02}"
            said = _answer(name, trials[name][chosen[name]].configuration, data, folder, seeds, "test")
            parts += [
                pl.DataFrame(
                    {"sample": samples["sample"].cast(pl.Int64), "probability": values[:, 0]}
                ).with_columns(contestant=pl.lit(name), seed=pl.lit(seed, pl.Int64))
                for seed, values in said.items()
            ]
            if progress is not None:
                progress(done + 1, len(trials), "chosen ones, all seeds")
        stream = io.BytesIO()
        pl.concat(parts).write_parquet(stream)
        write_atomically(path, stream.getvalue())
    held = read_parquet(path)
    found: dict[str, dict[int, Floats]] = {}
    for (name, seed), part in held.group_by(["contestant", "seed"], maintain_order=True):
        found.setdefault(str(name), {})[int(str(seed))] = part["probability"].to_numpy()
    return found


def _answer(
    name: str, configuration: Mapping[str, str], data: _Data, folder: Path, seeds: tuple[int, ...], split: str
) -> dict[int, Floats]:
    """Of each seed the (n, 1) probabilities of crossing of the samples of a split; fitted unless it stands in the folder.

    What is fitted the same for every seed answers for the first alone.
    """
    from roadaware.io.yaml import parse as parse_yaml
    from roadaware.training.recipe_files import replace_fields

    who = CONTESTANTS[name]
    if who.kind == "recipe":
        # As `_answer`, of a recipe of `train`
        from roadaware.training.pedestrians.run import train_predictors
        from roadaware.training.pedestrians.samples import build_fold
        from roadaware.training.pedestrians.several import fit_tabular, is_tabular

        recipe = _build_recipe(who, configuration, data)
        if is_tabular(recipe):
            fitted = fit_tabular(replace(recipe, seeds=seeds[:1]), data.material, folder, split)
            return {seeds[0]: fitted.predictions.samples["scores"].to_numpy().reshape(-1, 1)}
        found: dict[int, Floats] = {}
        for seed in seeds:
            one = replace(recipe, seeds=(seed,))
            trained = train_predictors(one, folder / f"seed-{seed}", None, data.material)
            predictor = trained.predictors[seed]
            fold = build_fold(data.material, split, predictor.inputs, one)
            found[seed] = np.asarray(predictor.probabilities(fold.inputs))
        return found
    fields = {key: parse_yaml(value) for key, value in configuration.items()}
    if who.kind == "rule":
        middle = float(fields["middle"])
        train, asked = (
            np.minimum(estimate_lane_time(data.build(part, ["centre"]), RATE_FPS, middle), _LONGEST_S)[
                :, None
            ]
            for part in ("train", split)
        )
        return {
            seeds[0]: _scale(train, data.truth("train").samples["label"].cast(pl.Int64).to_numpy(), asked)
        }
    config = replace_fields(HazardTreesConfig(), fields, name)
    given = data.build(split, config.inputs)
    found = {}
    for seed in seeds:
        path = folder / f"seed-{seed}.npz"
        if not path.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            times = data.collect_times(config.inputs)
            if who.kind == "time":
                facts = {"edges_s": list(EDGES_S), "fps": RATE_FPS}
                trees = HazardTrees.fit(
                    times.inputs, times.time_s, times.event, name_spans(), facts, config, seed
                )
            else:
                trees = fit_same_classifier(times, config, seed)
            trees.save(path)
        said = HazardTrees.open(path).probabilities(given)
        within = 1 - survive(said)[:, EDGES_S.index(WITHIN_S)] if who.kind == "time" else said[:, 0]
        found[seed] = np.clip(within, 0.0, 1.0)[:, None]
    return found


def _build_recipe(who: Contestant, configuration: Mapping[str, str], data: _Data) -> PedestrianRecipe:
    from roadaware.training.recipe_files import find_recipe, read_recipe

    reader, root = data.source
    changes = [f"{key}={value}" for key, value in configuration.items()]
    recipe = read_recipe(
        find_recipe(Path(who.recipe)),
        (f"samples.reader={reader}", "samples.config=default", "threads=1", *who.fixed, *changes),
    )
    if not isinstance(recipe, PedestrianRecipe):
        raise UsageError(f"{who.recipe} is no recipe of a predictor of pedestrians")
    # A path may hold signs that YAML reads otherwise.
    return replace(recipe, samples=replace(recipe.samples, root=root), choose=CRITERION)


def _scale(train: Floats, truth: Ints, asked: Floats) -> Floats:
    """(m, 1) probabilities of scores by a logistic curve that is fitted to those of train (Platt, 1999).

    Args:
        train: (n, 1) scores.
        truth: (n,) 0 or 1.
        asked: (m, 1) scores.
    """
    from sklearn.linear_model import LogisticRegression

    with limit_to_one_thread():
        return np.asarray(LogisticRegression().fit(train, truth).predict_proba(asked)[:, 1:])


def _judge(
    answers: Mapping[str, Mapping[int, Floats]],
    trials: Mapping[str, Sequence[Trial]],
    chosen: Mapping[str, int],
    data: _Data,
    resamples: int,
) -> tuple[dict[str, SampleScores], pl.DataFrame]:
    """The scores of each contestant, means over seeds, and every metric of every fit with intervals."""
    test = data.truth("test")
    scores: dict[str, SampleScores] = {}
    rows = []
    for name, by_seed in answers.items():
        best = trials[name][chosen[name]]
        said = {f"seed {seed}": values.reshape(-1, 1) for seed, values in by_seed.items()}
        if len(said) > 1:
            said[results.ENSEMBLE] = np.asarray(np.mean(list(said.values()), axis=0))
        held = {
            fit: collect_sample_scores(build_sample_predictions(test.samples, values), test, "action")[0]
            for fit, values in said.items()
        }
        scores[name] = held.get(results.ENSEMBLE, next(iter(held.values())))
        who = CONTESTANTS[name]
        if who.kind == "recipe":
            recipe = _build_recipe(who, best.configuration, data)
            inputs = recipe.network.inputs
        else:
            recipe = PedestrianRecipe(
                name, network=NetworkRecipe(name, fields=dict(best.configuration)),
                samples=SamplesRecipe(*data.source, protocol=PROTOCOL),
            )  # fmt: skip
            inputs = ("history",) if who.kind != "rule" else ("centre",)
        fit = results.Fit(0, best.cpu_s, None, best.score, CRITERION)
        table = results.build_result_table(
            recipe, inputs, held, {f"seed {seed}": fit for seed in by_seed}, resamples=resamples
        )
        rows.append(table.with_columns(recipe=pl.lit(name), parameters=pl.lit(None, pl.Int64)))
    return scores, pl.concat(rows)
