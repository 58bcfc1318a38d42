"""Predictors of pedestrians: in a stream, many at a time, learning from JAAD, and cut out of videos."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.measure import call

_Row = tuple[str, str, str]
_RECIPE = Path(__file__).resolve().parent.parent / "configs" / "pedestrians" / "steady-jaad.yaml"
_NETWORKS = (
    *("single-rnn", "multi-rnn", "stacked-rnn", "hierarchical-rnn", "sfgru", "pcpa"),
    *("transformer-encoder", "transformer-encoder-decoder", "biped", "pedformer"),
)
_FILM_FRAMES, _FILMS, _WALKERS, _SIZE = 240, 4, 6, (1280, 720)


def crossing_stream() -> _Row:
    """Crossing with its passes and risk, as they ship, of one, ten and fifty pedestrians: CPU time."""
    found = {fps: [_per_pedestrian_us(n, fps) for n in (1, 10, 50)] for fps in (30.0, 12.0)}
    shown = "; ".join(
        f"{', '.join(f'{each / 1e3:.3f}' for each in times)} ms at {fps:.0f} frames/s"
        for fps, times in found.items()
    )
    return "crossing, interval and risk region in a stream, a pedestrian (1, 10, 50)", "0.2 ms", shown


def crossing_inference() -> _Row:
    """Windows of 15 frames through the predictor that ships, in batches of 4096."""
    from roadaware.models.crossing.predictor import Predictor

    model = Predictor.open(_shipped()[0])
    return "crossing of windows of 15 boxes", "50,000 samples/s", f"{_a_second(model):,.0f} samples/s"


def crossing_networks() -> _Row:
    """The same through the networks of the recipes for JAAD, at a quarter of their width, random weights."""
    import torch

    from roadaware.models import create, get_crossing_entry
    from roadaware.models.crossing.predictor import Predictor
    from roadaware.training.recipe_files import read_recipe

    widths = {"boxes": 4, "boxes:first": 4, "boxes:last": 4, "ego:action": 5, "traffic": 15, "grid": 576}
    told = {}
    for name in _NETWORKS:
        recipe: Any = read_recipe(_RECIPE.with_name(f"{name}-jaad.yaml"), [])
        shapes = {each: (15, widths[each]) for each in recipe.network.inputs}
        torch.manual_seed(0)
        config = get_crossing_entry(name).config_class.small()
        network = create(name, config=config, shapes=shapes, labels=2)
        told[name] = _a_second(Predictor(network.eval(), name, "action", ("waits", "crosses")), 1 << 13)
    shown = "; ".join(f"{name} {each:,.0f}" for name, each in told.items())
    return "the same by other networks, small, samples/s", "-", shown


def _a_second(model: Any, n: int = 1 << 15) -> float:
    """How many random windows a predictor answers for in a second, on all cores."""
    from roadaware.models.crossing.inputs import Held, InputSet

    rng = np.random.default_rng(0)
    shapes = model.network.shapes
    columns = {name: Held(rng.normal(size=(n, *shape)).astype(np.float32)) for name, shape in shapes.items()}
    given = InputSet(columns, n)
    return n / call(lambda: model.logits(given), times=3).seconds


def crossing_crops() -> _Row:
    """Crops of 64 pixels cut from videos in order, with nothing else to do: decoding, resizing, copying."""
    with tempfile.TemporaryDirectory() as scratch:
        scenes, samples = _filmed(Path(scratch))
        from roadaware.tasks.crossing_inputs import Media, build_inputs

        given = build_inputs(scenes, "train", ["crop:context@64"], media=Media(root=Path(scratch)))
        rows = np.arange(samples)
        wall, spent = time.perf_counter(), time.process_time()
        for batch in np.array_split(rows, max(1, samples // 64)):
            given.take(batch)
        wall, spent = time.perf_counter() - wall, time.process_time() - spent
    frames = _FILMS * _FILM_FRAMES
    got = f"{spent / wall / 2:.0%} busy; {samples / wall:,.0f} samples/s, {frames / wall:,.0f} frames/s"
    return "crops of 15 frames out of 1280x720 videos: share of two cores", "-", got


def crossing_training(data: Path) -> _Row:
    """One seed of the recipe for JAAD, reading and cutting included, on two threads."""
    import torch

    from roadaware.training.pedestrians.run import train_predictors
    from roadaware.training.recipe_files import read_recipe

    archive = next(iter(sorted((data / "jaad").glob("*.zip"))), data / "jaad")
    told = (f"samples.root={archive}", "seeds=[0]", "threads=2")
    before, started = torch.get_num_threads(), time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        train_predictors(read_recipe(_RECIPE, told), Path(scratch) / "run")
    torch.set_num_threads(before)
    return "training of steady on JAAD, one seed, two cores", "60 s", f"{time.perf_counter() - started:.0f} s"


def _shipped() -> list[Path]:
    """The predictors of crossing and of risk that come along."""
    from roadaware.online.setup import PREDICTORS, WEIGHTS

    return [path for name in PREDICTORS if (path := WEIGHTS / name).is_file()]


def _per_pedestrian_us(n: int, fps: float, frames: int = 120) -> float:
    """CPU microseconds for one of n pedestrians in one frame, the median of frames."""
    from roadaware.online.crossing import Follower
    from roadaware.online.crossing_forecaster import open_foresight

    follower = Follower(open_foresight(_shipped()))
    rng = np.random.default_rng(0)
    at, by, spent = rng.uniform(100, 1500, (n, 2)), rng.normal(0, 3, (n, 2)), []
    for frame in range(frames):
        corners = at + by * frame
        boxes = np.concatenate([corners, corners + np.array([40, 100])], axis=1)
        begin = time.process_time()
        told = follower.look(list(range(n)), boxes, frame / fps, (1920, 1080))
        if told[0] is not None:
            spent.append(time.process_time() - begin)
    return float(np.median(spent)) / n * 1e6


def _filmed(root: Path) -> tuple[Any, int]:
    """Videos with pedestrians in them, and how many samples there are."""
    from roadaware.io.video import VideoWriter
    from roadaware.scenes.schema import CORNERS
    from roadaware.scenes.tables import Meta, Scenes

    rng, boxes, samples = np.random.default_rng(0), [], []
    wide, high = _SIZE
    for film in range(_FILMS):
        blocks = rng.integers(0, 255, (high // 40, (wide + _FILM_FRAMES) // 40, 3), dtype=np.uint8)
        picture = blocks.repeat(40, axis=0).repeat(40, axis=1)
        with VideoWriter(root / f"film{film}.mp4", wide, high, 30.0) as writer:
            for frame in range(_FILM_FRAMES):
                writer.write(np.ascontiguousarray(picture[:, frame : frame + wide]))
        for walker in range(_WALKERS):
            tube, x, y = film * _WALKERS + walker, *rng.uniform(100, 500, 2)
            edges = np.arange(_FILM_FRAMES)[:, None] + np.array([x, y, x + 60, y + 150])
            boxes.append(
                pl.DataFrame(edges, schema=list(CORNERS)).with_columns(
                    video=pl.lit(f"film{film}"),
                    tube=pl.lit(tube, pl.Int64),
                    frame=pl.int_range(_FILM_FRAMES, dtype=pl.Int64),
                )
            )
            starts = range(0, _FILM_FRAMES - 15, 10)
            samples += [(tube, f"film{film}", start, start + 15) for start in starts]
    table = pl.DataFrame(samples, schema=["tube", "video", "start_frame", "end_frame"], orient="row")
    names = [f"film{film}" for film in range(_FILMS)]
    scenes = Scenes(
        videos=pl.DataFrame(
            {"video": names, "path": [f"{name}.mp4" for name in names]},
        ).with_columns(width_px=pl.lit(wide, pl.Int64), height_px=pl.lit(high, pl.Int64)),
        tubes=table.select("tube", "video").unique(maintain_order=True),
        boxes=pl.concat(boxes).with_columns(box=pl.int_range(pl.len(), dtype=pl.Int64)),
        samples=table.with_columns(
            sample=pl.int_range(pl.len(), dtype=pl.Int64), kind=pl.lit("action"), split=pl.lit("train")
        ),
        meta=Meta(dataset="films"),
    )
    return scenes, len(samples)


BENCHMARKS = (crossing_stream, crossing_inference, crossing_networks, crossing_crops)
ON_DATA = (crossing_training,)
