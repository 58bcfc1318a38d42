"""`python -m benchmarks.train_things make|train|score FOLDER`: the finder of things on the road, learnt from drawn drives.

`make` simulates drives (`road@1`, seed 70, 640x360), lays things on the way and beside it, and keeps some frames of each
with the boxes of what is seen of them. Half of the things are of shapes and colours drawn by chance, the others traffic
cones, dogs, pushchairs, carts, plastic bags and barriers. Tyres, suitcases, dustbins and debris, by which triage is judged,
are none of them. `train` learns the network of `roadaware.models.obstacles` on one
core. Of eight drives one is left out to look at.

    python -m benchmarks.train_things make THINGS --drives 88
    python -m benchmarks.train_things train THINGS
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.triage import FPS, list_starts
from benchmarks.triage_films import _PLANTERS, Ground, build_config
from roadaware.arrays import Floats, Pixels
from roadaware.io.files import write_atomically
from roadaware.io.folders import make_folder
from roadaware.models.obstacles import (
    STRIDE,
    TOP,
    WIDTH_PX,
    ObstacleNetwork,
    cut_strip,
    detect_obstacles,
    open_obstacle_network,
)
from roadaware.models.tensor_files import read_safetensors
from roadaware.simulator.actors import Actor, Pose
from roadaware.simulator.episode import Episode
from roadaware.simulator.figures.form import Form, Size, ball, box, cylinder, gloss, matt, wedge
from roadaware.simulator.figures.models import MODELS, Model
from roadaware.simulator.figures.objects import MAKERS
from roadaware.simulator.make import make_episode
from roadaware.simulator.mesh import build_camera
from roadaware.simulator.people import stride_m
from roadaware.simulator.render import Stage, instance_boxes, render
from roadaware.simulator.town.regions import On
from roadaware.simulator.walkers.persons import draw_person

SEED = 70
_KINDS = ("traffic_cone", "dog", "stroller", "cart", "plastic_bag", "barrier")
_FIRST_M, _GAP_M, _SIDE_M = 15.0, (6.0, 24.0), 3.2
_LEAST_PX = 12
"""Pixels of a thing that are seen, at least."""


def _build_shape(form: Form, size: Size, rng: np.random.Generator, coarse: bool) -> None:
    """One to four solids in and on each other, each of its own colour: nothing in particular."""
    long, wide, high = size
    base = rng.uniform(0.0, 1.0, 3) ** 2.2
    for number in range(int(rng.integers(1, 5))):
        low = np.array([-0.5, -0.5, 0.0]) + rng.uniform(0, 0.5, 3) * (number > 0)
        top = low + rng.uniform(0.3, 1.0, 3) if number else np.array([0.5, 0.5, rng.uniform(0.4, 1.0)])
        a, b = low * [long, wide, high], np.minimum(top, [0.5, 0.5, 1.0]) * [long, wide, high]
        b = np.maximum(b, a + 0.04)
        middle, half = (a + b) / 2, (b - a) / 2
        colour = base if rng.random() < 0.5 else rng.uniform(0.0, 1.0, 3) ** 2.2
        # Most of what lies on roads is dull.
        colour = colour.mean() + rng.random() * (colour - colour.mean())
        paint = (matt if rng.random() < 0.6 else gloss)(tuple(np.clip(colour, 0.015, 0.8)))
        shape = int(rng.integers(4))
        if shape == 0:
            solid = box(tuple(a), tuple(b))
        elif shape == 1:
            solid = ball(tuple(middle), tuple(half), 8, 4)
        elif shape == 2:
            along = (0, 1, 2)[int(rng.integers(3))]
            reach = np.zeros(3)
            reach[along] = half[along]
            solid = cylinder(
                tuple(middle - reach), tuple(middle + reach), float(np.delete(half, along).min())
            )
        else:
            inner = rng.uniform(0.2, 0.9)
            base_at = (a[0], b[0], a[1], b[1], a[2])
            top_at = tuple(m + s * inner * h for m, h in zip(middle, half, strict=True) for s in (-1, 1))[:4]
            solid = wedge(base_at, (*top_at, b[2]))
        form.add(solid, paint)


MAKERS["shape"] = _build_shape
MODELS["shape"] = (Model("shape", (0.6, 0.6, 0.6)),)  # type: ignore[index]


def lay_things(episode: Episode, rng: np.random.Generator) -> tuple[Episode, frozenset[int]]:
    """A drive with things and people on its way and beside it, and the numbers of the things."""
    for _ in range(2):
        starts = list_starts(Ground.of(episode).way)
        found = _PLANTERS["child"](Ground.of(episode), int(rng.choice(starts)), rng) if starts else None
        episode = episode if found is None else found[0]
    ground = Ground.of(episode)
    where, actors, things = _FIRST_M, list(episode.actors), set[int]()
    whole = range(len(ground.way.t_s))
    while where < ground.way.gone[-1] + 20.0:
        at, where = where, where + float(rng.uniform(*_GAP_M))
        side = float(rng.uniform(-_SIDE_M, _SIDE_M) * (2.0 if rng.random() < 0.15 else 1.0))
        track, heading = ground.track(np.full(len(whole), at), np.full(len(whole), side))
        frames = ground.span(at)
        on = ground.regions.at(track[:1]).on
        if np.isin(on, (On.OFF, On.PAVEMENT, On.BUS_STOP)).any() or not len(frames):
            continue
        turn = heading + float(rng.uniform(-np.pi, np.pi))
        if not ground.is_free("suitcase", frames, track[: len(frames)], turn[: len(frames)]):
            continue
        if rng.random() < 0.25:
            actors.append(_build_walker(ground, len(actors), at, side, rng))
            continue
        kind = "shape" if rng.random() < 0.5 else str(rng.choice(_KINDS))
        thing = ground.build_actor(kind, 0, whole, track, turn, int(rng.integers(2**31)))
        size = np.asarray(thing.size_m) * rng.uniform(0.8, 1.2)
        if kind == "shape":
            size = np.array([rng.uniform(0.25, 1.3), rng.uniform(0.2, 0.9), rng.uniform(0.18, 1.1)])
        things.add(len(actors))
        actors.append(replace(thing, number=len(actors), size_m=tuple(size.tolist())))
    return replace(episode, actors=tuple(actors)), frozenset(things)


def _build_walker(ground: Ground, number: int, at: float, side: float, rng: np.random.Generator) -> Actor:
    """Somebody of any age who walks over the way, or waits on it, where the vehicle comes."""
    frames = ground.span(at)
    since = (np.arange(len(frames)) - rng.uniform(0, len(frames))) / FPS
    pace = float(rng.choice([-1.0, 1.0]) * rng.uniform(0.9, 2.0)) if rng.random() < 0.8 else 0.0
    track, along = ground.track(np.full(len(frames), at), side + pace * np.clip(since, -2.0, 3.0))
    person = draw_person(rng, ground.episode.config.behaviour, True, ("child",) if rng.random() < 0.5 else ())
    moving = (since >= -2.0) & (since <= 3.0) & (pace != 0.0)
    where = ground.regions.at(track)
    speed = np.where(moving, abs(pace), 0.0)
    bare = Actor(
        number, "Ped", person.model, person.size_m, person.look, frames.start,
        np.column_stack([track, where.height_m]), along + (np.pi / 2 if pace >= 0 else -np.pi / 2), speed,
        np.zeros(len(frames), np.uint8), np.where(moving, int(Pose.WALK), int(Pose.STAND)).astype(np.uint8),
        np.zeros(len(frames)), np.zeros(len(frames)), where.lane,
    )  # fmt: skip
    return replace(bare, gait=np.cumsum(speed / FPS * 2.0 * np.pi / stride_m(bare)))


def make_drive(number: int) -> tuple[np.ndarray, Floats]:
    """(n, H, W, 3) uint8 frames of a drive, and (boxes, 7) frame, 0 of a thing or 1 of a person, x1, y1, x2, y2 in pixels,
    and pixels seen."""
    rng = np.random.default_rng([SEED, number, 3])
    episode, things = lay_things(make_episode(build_config(), SEED, number), rng)
    stage, images, boxes, since = Stage(episode), [], [], 99.0
    for frame in range(2, episode.n_frames):
        since += max(float(episode.ego.speed[frame]) / episode.config.camera.fps, 0.05)
        if since < 3.0:
            continue
        since = float(rng.uniform(0, 2))
        camera = build_camera(episode.ego, episode.config, frame, episode.seed)
        image = render(stage.soup(frame), camera, episode.conditions, seed=episode.seed, frame=frame)
        found = instance_boxes(image.instance, len(episode.actors) + len(episode.signals))
        for each, actor in enumerate(episode.actors):
            kind = 0 if each in things else 1 if actor.kind == "Ped" else -1
            if kind >= 0 and found[each, 4] >= _LEAST_PX:
                boxes.append((len(images), kind, *found[each].tolist()))
        images.append(image.rgb)
    return np.array(images), np.array(boxes, np.float64).reshape(-1, 7)


def make(folder: Path, drives: int) -> None:
    """The frames of drives that are not there yet."""
    make_folder(folder)
    for number in range(drives):
        path = folder / f"{number:04d}.npz"
        if not path.exists():
            images, boxes = make_drive(number)
            with path.with_suffix(".part").open("wb") as file:
                np.savez(file, images=images, boxes=boxes)
            path.with_suffix(".part").rename(path)


_HELD_OUT = 8
"""Of so many drives one is not learnt from."""
_BATCH, _RATE = 8, 2e-3
_CUT_PX = (192, 96)
"""Width and height of the parts of strips that are learnt from: half of the cost, and what lies on the road is in them."""
_NOISE = np.random.default_rng(0).normal(0, 1, 2**19).astype(np.float32)
_SMALL_PX = (6.0, 12.0)
"""Height in pixels of the strip below which a thing, or a person, is neither asked for nor denied."""


def read_strips(folder: Path, held_out: bool) -> tuple[Pixels, list[Floats]]:
    """(n, h, w, 3) strips of all frames, and of each (boxes, 5) class, x1, y1, x2, y2 in pixels of the strip."""
    strips, boxes = [], []
    for path in sorted(folder.glob("*.npz")):
        if (int(path.stem) % _HELD_OUT == _HELD_OUT - 1) != held_out:
            continue
        with np.load(path) as held:
            images, found = held["images"], held["boxes"]
        for k, image in enumerate(images):
            strip = cut_strip(image)
            top = round(TOP * image.shape[0])
            rows = found[found[:, 0] == k][:, 1:6].copy()
            rows[:, 1::2] *= WIDTH_PX / image.shape[1]
            rows[:, 2::2] = (rows[:, 2::2] - top) * strip.shape[0] / (image.shape[0] - top)
            strips.append(strip)
            boxes.append(rows)
    return np.array(strips), boxes


def _augment(strip: Pixels, boxes: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """A part of a strip by another camera and in another light: at another scale, mirrored, with other colours and noise."""
    width, height = _CUT_PX
    scale = float(np.exp(rng.uniform(-0.2, 0.3)))
    wide, high = width / scale, height / scale
    # Mostly where something is
    middle = rng.uniform(0, 1, 2) * [strip.shape[1], strip.shape[0]]
    if len(boxes) and rng.random() < 0.65:
        _, x1, y1, x2, y2 = boxes[rng.integers(len(boxes))]
        middle = np.array([(x1 + x2) / 2, (y1 + y2) / 2]) + rng.uniform(-0.4, 0.4, 2) * [wide, high]
    x0 = float(np.clip(middle[0] - wide / 2, 0, max(0.0, strip.shape[1] - wide)))
    y0 = float(np.clip(middle[1] - high / 2, 0, max(0.0, strip.shape[0] - high)))
    box = (x0, y0, x0 + wide, y0 + high)
    image = Image.fromarray(strip)
    image = image.transform((width, height), Image.Transform.EXTENT, box, Image.Resampling.BILINEAR)
    rows = boxes.copy()
    rows[:, 1::2] = (rows[:, 1::2] - x0) * scale
    rows[:, 2::2] = (rows[:, 2::2] - y0) * scale
    # Gamma by a table, then saturation, other colours and the light by one matrix
    x = (np.arange(256, dtype=np.float32) / 255)[:, None] ** np.exp(rng.uniform(-0.15, 0.15))
    x = x.astype(np.float32)[np.asarray(image), 0]
    if rng.random() < 0.5:
        x, rows[:, [1, 3]] = x[:, ::-1], width - rows[:, [3, 1]]
    colours = np.full((3, 3), 1 / 3) + (np.eye(3) - 1 / 3) * rng.uniform(0.7, 1.25)
    x = x @ (colours * rng.uniform(0.93, 1.07, 3) * rng.uniform(0.85, 1.15)).astype(np.float32)
    shift = int(rng.integers(len(_NOISE) - x.size))
    x = x + rng.uniform(0, 0.02) * _NOISE[shift : shift + x.size].reshape(x.shape)
    return np.clip(x, 0, 1).astype(np.float32), rows


def _build_targets(boxes: Floats, shape: tuple[int, int]) -> tuple[Floats, Floats, Floats, Floats]:
    """(2, r, c) whether a class is there and whether it is asked, (4, r, c) ways to the sides, (r, c) whether these are."""
    rows, columns = shape
    y, x = (np.mgrid[:rows, :columns] + 0.5) * STRIDE
    there, asked = np.zeros((2, rows, columns)), np.ones((2, rows, columns))
    ways, boxed = np.ones((4, rows, columns)), np.zeros((rows, columns))
    order = np.argsort(-(boxes[:, 4] - boxes[:, 2])) if len(boxes) else []
    for kind, x1, y1, x2, y2 in boxes[order].tolist():
        inside = (x >= x1 - 2) & (x < x2 + 2) & (y >= y1 - 2) & (y < y2 + 2)
        asked[int(kind)][inside] = 0
        if y2 - y1 < _SMALL_PX[int(kind)] or x2 < 1 or x1 > columns * STRIDE - 1 or y2 < 1:
            continue
        # A thing that the lower edge cuts looks like markings that it cuts, and is not asked for either.
        if kind == 0 and y2 > rows * STRIDE - 2:
            continue
        xm, ym = (max(x1, 0) + min(x2, columns * STRIDE)) / 2, (max(y1, 0) + min(y2, rows * STRIDE)) / 2
        core = (np.abs(x - xm) < max(0.3 * (x2 - x1), STRIDE / 2)) & (
            np.abs(y - ym) < max(0.3 * (y2 - y1), STRIDE / 2)
        )
        there[int(kind)][core] = asked[int(kind)][core] = 1
        ways[:, core] = np.maximum(np.stack([x - x1, y - y1, x2 - x, y2 - y])[:, core], 0.5)
        boxed[core] = 1
    return there, asked, ways, boxed


def train(folder: Path, steps: int, minutes: float, begin: Path | None, seed: int = 1) -> None:
    """Learn so many steps on one core, at most for so many minutes, and write `obstacles.safetensors` beside the frames."""
    import torch
    from safetensors.torch import save
    from torch.nn import functional

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    strips, boxes = read_strips(folder, held_out=False)
    shape = (_CUT_PX[1] // STRIDE, _CUT_PX[0] // STRIDE)
    network = ObstacleNetwork()
    if begin is not None:
        network.load_state_dict(read_safetensors(begin)[0])
    network = network.to(memory_format=torch.channels_last).train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=_RATE, weight_decay=1e-3)
    print(
        f"{len(strips)} frames, {sum(map(len, boxes))} boxes, {sum(p.numel() for p in network.parameters())} parameters"
    )
    began, step, total = time.monotonic(), 0, 0.0
    while (spent := max(step / steps, (time.monotonic() - began) / 60 / minutes)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = _RATE * min(1.0, step / 100) * (0.5 + 0.5 * np.cos(np.pi * spent))
        images, targets = [], []
        for k in rng.integers(len(strips), size=_BATCH).tolist():
            image, rows = _augment(strips[k], boxes[k], rng)
            images.append(image)
            targets.append(_build_targets(rows, shape))
        there, asked, ways, boxed = (
            torch.from_numpy(np.stack(each).astype(np.float32)) for each in zip(*targets, strict=True)
        )
        x = (
            torch.from_numpy(np.stack(images))
            .permute(0, 3, 1, 2)
            .contiguous(memory_format=torch.channels_last)
        )
        with torch.autocast("cpu", torch.bfloat16):
            maps = network(x)
        maps = maps.float()
        heat = maps[:, :2]
        # Focal loss (Lin et al., ICCV 2017), its exponent 2: most places are easy
        p = heat.sigmoid()
        miss = torch.where(there > 0, 1 - p, p)
        each = functional.binary_cross_entropy_with_logits(heat, there, reduction="none") * miss**2
        count = there.sum().clamp(min=1)
        side = ((maps[:, 2:] - ways.log()).abs() * boxed[:, None]).sum() / boxed.sum().clamp(min=1) / 4
        loss = (each * asked).sum() / count + 0.5 * side
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()
        step, total = step + 1, total + loss.item()
        if step % 100 == 0:
            print(
                f"step {step}, {100 * spent:.0f} %, loss {total / 100:.3f}, {time.process_time():.0f} CPU s",
                flush=True,
            )
            total = 0.0
    about = {"trained_on": f"drawn drives of road@1, seed {SEED}; steps {step}; seed {seed}"}
    held = {name: each.detach().clone().contiguous() for name, each in network.state_dict().items()}
    write_atomically(folder / "obstacles.safetensors", save(held, about))


def score(folder: Path, weights: Path) -> None:
    """Of the drives that were not learnt from: which things and people are found, by their height, at so many false ones."""
    network = open_obstacle_network(weights)
    found, wanted, n = [], [], 0
    for path in sorted(folder.glob("*.npz")):
        if int(path.stem) % _HELD_OUT != _HELD_OUT - 1:
            continue
        with np.load(path) as held:
            images, boxes = held["images"], held["boxes"]
        for k, rows in enumerate(detect_obstacles(network, list(images)) if len(images) else ()):
            true = boxes[boxes[:, 0] == k]
            # As in `roadaware.online.obstacles`: things that the lower edge cuts are left out.
            low = 0.98 * images.shape[1]
            row_cut, true_cut = (
                (rows[:, 3] >= low) & (rows[:, 5] == 0),
                (true[:, 5] >= low) & (true[:, 1] == 0),
            )
            rows, true = rows[~row_cut], true[~true_cut]
            taken = np.zeros(len(true), bool)
            for row in rows.tolist():
                fits = [
                    iou(np.array(row[:4]), each[2:6]) if each[1] == row[5] and not taken[j] else 0.0
                    for j, each in enumerate(true)
                ]
                best = int(np.argmax(fits)) if fits else -1
                hit = best >= 0 and fits[best] >= 0.3
                if hit:
                    taken[best] = True
                near = any(each[1] == row[5] and iou(np.array(row[:4]), each[2:6]) > 0.1 for each in true)
                found.append((n, int(row[5]), row[4], true[best, 5] - true[best, 3] if hit else -1.0, near))
            wanted += [(int(each[1]), each[5] - each[3]) for each in true]
            n += 1
    table, all_ = np.array(found), np.array(wanted)
    for kind, name in enumerate(("thing", "person")):
        mine, true = table[table[:, 1] == kind], all_[all_[:, 0] == kind]
        wrong = np.sort(mine[(mine[:, 3] < 0) & (mine[:, 4] == 0)][:, 2])[::-1]
        for rate in (0.01, 0.05):
            place = int(rate * n)
            least = wrong[place] if len(wrong) > place else 0.05
            says = []
            for low, high in ((8, 12), (12, 20), (20, 40), (40, 400)):
                asked = (true[:, 1] >= low) & (true[:, 1] < high)
                hits = (mine[:, 3] >= low) & (mine[:, 3] < high) & (mine[:, 2] > least)
                says.append(f"{low}-{high} px {hits.sum() / max(asked.sum(), 1):.2f} of {asked.sum()}")
            print(f"{name}: {rate} false a frame at {least:.2f}; found {', '.join(says)}; {n} frames")


def iou(one: Floats, other: Floats) -> float:
    """Overlap of two boxes over their union."""
    shared = np.prod(np.maximum(np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2]), 0))
    return float(shared / (np.prod(one[2:] - one[:2]) + np.prod(other[2:] - other[:2]) - shared + 1e-9))


def main() -> None:
    """Run one of the parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("make", "train", "score"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--drives", type=int, default=88)
    parser.add_argument("--steps", type=int, default=12000, help="of training")
    parser.add_argument("--begin", type=Path, help="weights to go on from")
    parser.add_argument("--minutes", type=float, default=1e6, help="of training, at most")
    asked = parser.parse_args()
    started_s = time.process_time()
    if asked.part == "make":
        make(asked.folder, asked.drives)
    elif asked.part == "train":
        train(asked.folder, asked.steps, asked.minutes, asked.begin)
    else:
        score(asked.folder, asked.folder / "obstacles.safetensors")
    print(f"{time.process_time() - started_s:.0f} CPU s")


if __name__ == "__main__":
    main()
