"""A synthetic crowd on disk: ground truth and predictions of four tasks, each in the files its own evaluators read."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from roadaware.arrays import Floats
from roadaware.datasets.chaotic_vocabulary import ACTIONS_OFFICIAL
from roadaware.io.folders import write_bytes, write_text

# A seeded crowd in trouble: who is where, does what, to whom, and is heard; one world behind four tasks.

WIDTH, HEIGHT, FPS, FRAMES = 640, 360, 10, 200
CATEGORIES = ("fires", "fight", "flood", "protest_riot", "queue_chaos", "quarrel")
_PAIRS = {
    "fighting": ("punching", "punching", 0.6),
    "pushing": ("pushing", "retreating", 0.8),
    "arguing with": ("arguing", "arguing", 1.2),
    "hugging": ("hugging", "hugging", 0.5),
    "running away from": ("running/escaping", "chasing", 2.0),
    "following after": ("walking", "walking", 1.8),
}
"""Interaction to what its subject and its object do meanwhile, and how many widths stand between them."""
_ALONE = ("walking", "watching", "recording", "holding signage", "running/escaping", "chanting/cheering")
_CLOTHES = ("red jacket", "blue shirt", "black hoodie", "white T-shirt", "green coat", "grey suit")
_HEARD = {"arguing": "arguing", "chanting/cheering": "chanting/cheering", "punching": "shouting"}
_LONGEST_BOND = 120


@dataclass(frozen=True)
class Deed:
    """An action of a person over a half-open span of frames."""

    action: str
    start: int
    end: int


@dataclass(frozen=True)
class Person:
    """One person of a video.

    Args:
        number: within the video.
        clothes: what a sentence tells them by.
        start: first frame.
        boxes: (n, 4) in pixels, one per frame from `start` on.
        deeds: what they do; they may overlap.
    """

    number: int
    clothes: str
    start: int
    boxes: Floats
    deeds: list[Deed] = field(default_factory=list)

    @property
    def end(self) -> int:
        """The frame after the last."""
        return self.start + len(self.boxes)

    def at(self, frame: int) -> Floats:
        """(4,) the box in a frame in which they are seen."""
        box: Floats = self.boxes[frame - self.start]
        return box

    def doing(self, frame: int) -> list[str]:
        """Everything they do in a frame, each once."""
        return list(dict.fromkeys(deed.action for deed in self.deeds if deed.start <= frame < deed.end))


@dataclass(frozen=True)
class Bond:
    """A relation of two persons over a half-open span of frames."""

    subject: int
    predicate: str
    object: int
    start: int
    end: int


@dataclass(frozen=True)
class Crowd:
    """One video of `FRAMES` frames.

    Args:
        video: its name.
        category: what happens in it as a whole.
        persons: by their numbers.
        bonds: between them.
    """

    video: str
    category: str
    persons: list[Person]
    bonds: list[Bond]

    def heard(self, frame: int) -> tuple[str, Person] | None:
        """What is heard in a frame and who makes it: the first who does something loud."""
        for person in self.persons:
            if person.start <= frame < person.end:
                for action in person.doing(frame):
                    if action in _HEARD:
                        return _HEARD[action], person
        return None


def generate_crowds(videos: int, rng: np.random.Generator) -> list[Crowd]:
    """Several videos; each has one or two pairs of people who deal with each other, and others who do not."""
    return [_crowd(f"crowd-{number:02d}", rng) for number in range(1, videos + 1)]


def _crowd(video: str, rng: np.random.Generator) -> Crowd:
    persons: list[Person] = []
    bonds: list[Bond] = []
    for _ in range(int(rng.integers(1, 4))):
        predicate = str(rng.choice(list(_PAIRS)))
        first, second, bond = _pair(len(persons), predicate, rng)
        persons += [first, second]
        bonds.append(bond)
    for _ in range(int(rng.integers(1, 5))):
        number = len(persons)
        start, length = int(rng.integers(0, 40)), int(rng.integers(60, 160))
        deeds = [Deed(str(rng.choice(_ALONE)), start, start + length)]
        if rng.random() < 0.4:
            deeds.append(Deed(str(rng.choice(_ALONE)), start + length // 3, start + length))
        person = Person(number, str(rng.choice(_CLOTHES)), start, _inside(_path(length, rng)), deeds)
        persons.append(person)
        seen = [b for b in bonds if b.start >= person.start and b.end <= person.end]
        if seen and rng.random() < 0.7:
            bond = seen[int(rng.integers(len(seen)))]
            person.deeds.append(Deed("watching", bond.start, bond.end))
            bonds.append(Bond(person.number, "watching", bond.subject, bond.start, bond.end))
    return Crowd(video, str(rng.choice(CATEGORIES)), persons, bonds)


def _pair(number: int, predicate: str, rng: np.random.Generator) -> tuple[Person, Person, Bond]:
    """Two people who meet, and what goes on between them for a part of their time."""
    ours, theirs, gap = _PAIRS[predicate]
    start, length = int(rng.integers(0, 20)), int(rng.integers(120, 180))
    path = _path(length, rng)
    width = path[0, 2] - path[0, 0]
    beside = path + np.array([gap * width, 0.0, gap * width, 0.0]) + rng.normal(0, 0.4, path.shape)
    first = int(rng.integers(start, start + length - 60))
    last = int(rng.integers(first + 30, min(start + length, first + _LONGEST_BOND)))
    people = []
    for offset, (boxes, action) in enumerate(((path, ours), (beside, theirs))):
        deeds = [
            Deed("walking", start, first),
            Deed(action, first, last),
            Deed("watching", last, start + length),
        ]
        people.append(Person(number + offset, str(rng.choice(_CLOTHES)), start, _inside(boxes), deeds))
    return people[0], people[1], Bond(number, predicate, number + 1, first, last)


def _path(length: int, rng: np.random.Generator) -> Floats:
    """(length, 4) a person who walks, wavers and comes nearer or goes away."""
    height = rng.uniform(60, 170) * np.linspace(1, rng.uniform(0.8, 1.25), length)
    width = 0.42 * height
    x = rng.uniform(60, WIDTH - 240) + np.linspace(0, rng.uniform(-80, 160), length)
    y = rng.uniform(170, 250) + np.linspace(0, rng.uniform(-30, 50), length)
    sway = 3 * np.sin(np.arange(length) / rng.uniform(3, 6))
    corners = [x + sway - width / 2, y - height / 2, x + sway + width / 2, y + height / 2]
    path: Floats = np.stack(corners, axis=1)
    return path


def _inside(boxes: Floats) -> Floats:
    """The boxes rounded to tenths and cut to the image; at least two pixels stay."""
    cut = np.empty_like(boxes)
    for side, most in ((0, WIDTH), (1, HEIGHT)):
        cut[:, side] = np.clip(boxes[:, side], 0, most - 2)
        cut[:, side + 2] = np.clip(boxes[:, side + 2], cut[:, side] + 2, most)
    rounded: Floats = np.round(cut, 1)
    return rounded


# What a synthetic model predicts of a crowd: boxes that waver, labels mistaken, spans too long or too short.


@dataclass(frozen=True)
class Watcher:
    """How badly the model sees.

    Args:
        jitter_px: spread of a box's sides.
        missed: share of things not predicted at all.
        mistaken: share of predictions with another label.
        invented: predictions of nothing, per ground-truth one.
        shift_frames: spread of starts and ends.
        map_cells: rows and columns of a sound map.
    """

    jitter_px: float = 6.0
    missed: float = 0.15
    mistaken: float = 0.25
    invented: float = 0.5
    shift_frames: float = 8.0
    map_cells: int = 14


def add_box_jitter(boxes: Floats, rng: np.random.Generator, watcher: Watcher) -> Floats:
    """(n, 4) the boxes moved as a whole and side by side, upright and inside the image."""
    whole = rng.normal(0, watcher.jitter_px, (1, 2))
    moved = boxes + np.tile(whole, 2) + rng.normal(0, watcher.jitter_px / 3, boxes.shape)
    low = np.minimum(moved[:, :2], moved[:, 2:] - 1)
    corners = np.concatenate([low, np.maximum(moved[:, 2:], low + 1)], axis=1)
    limits = np.array([WIDTH, HEIGHT, WIDTH, HEIGHT])
    rounded: Floats = np.round(np.clip(corners, 0, limits), 1)
    return rounded


def sample_predicted_score(right: bool, rng: np.random.Generator) -> float:
    """A score that is higher for what is right, most of the time; five decimals."""
    return round(float(rng.beta(5, 2) if right else rng.beta(2, 4)), 5)


def sample_predicted_span(
    start: int, end: int, rng: np.random.Generator, watcher: Watcher
) -> tuple[int, int]:
    """A span about as long, at least one frame, inside the video."""
    first = int(np.clip(start + rng.normal(0, watcher.shift_frames), 0, FRAMES - 1))
    last = int(np.clip(end + rng.normal(0, watcher.shift_frames), first + 1, FRAMES))
    return first, last


def sample_predicted_relation(crowd: Crowd, bond: Bond, rng: np.random.Generator, watcher: Watcher) -> Bond:
    """The bond with its span shifted, as far as both are seen, and now and then between others' words."""
    subject, other = crowd.persons[bond.subject], crowd.persons[bond.object]
    low, high = max(subject.start, other.start), min(subject.end, other.end)
    first, last = sample_predicted_span(bond.start, bond.end, rng, watcher)
    first = min(max(first, low), high - 1)
    predicate = bond.predicate
    if rng.random() < watcher.mistaken:
        predicate = str(rng.choice(["watching", "pushing", "arguing with", "following after"]))
    return Bond(bond.subject, predicate, bond.object, first, min(max(last, first + 1), high))


def simulate_sound_map(person: Person, frame: int, rng: np.random.Generator, watcher: Watcher) -> Floats:
    """(cells, cells) where the model hears it: a hill as wide and high as the person, on rough ground."""
    cells = watcher.map_cells
    box = person.at(frame) / np.array([WIDTH, HEIGHT, WIDTH, HEIGHT]) * cells
    sides = box[2:] - box[:2]
    x, y = (box[:2] + box[2:]) / 2 + rng.normal(0, 0.2, 2) * sides
    # A hill reaches half of its height where it is 1.18 spreads from its top.
    wide, high = np.maximum(sides, 1.2) / 2
    rows, columns = np.mgrid[0:cells, 0:cells] + 0.5
    hill = np.exp(-(((columns - x) / wide) ** 2 + ((rows - y) / high) ** 2) / 2)
    ground: Floats = (hill + 0.15 * rng.random((cells, cells))).astype(np.float32)
    return ground


FACTS = "facts.json"
FIRST_SECOND = 900
_DIGITS = 4
_STEP = 20


@dataclass(frozen=True)
class ChaosFacts:
    """Facts of the written data, for comparison with findings.

    Args:
        videos: how many.
        persons: in all of them.
        actions: rows of the ground truth of actions: one per box and label.
        relations: who does what to whom.
        sentences: about persons.
        sounds: with a visible source.
    """

    videos: int
    persons: int
    actions: int
    relations: int
    sentences: int
    sounds: int


def write_chaos(root: Path, *, seed: int = 0, videos: int = 12, watcher: Watcher | None = None) -> ChaosFacts:
    """Write ground truth and predictions of the four tasks into folders and say what is in them; same seed, same bytes.

    `actions` holds gt.csv, pred.csv, action_list.pbtxt and excluded.csv in the form of AVA; `relations`
    ground truth/VIDEO.json and pred.json in that of VidVRD; `grounding` test_proc.json and pred.json as TubeDETR
    has them for HC-STVG; `sound` vggss.json and maps.npz. `categories.csv` says what happens in each video.

    Args:
        root: the folder, made if need be; files of an earlier demo in it are replaced.
        seed: where chance comes from.
        videos: how many, at least 1.
        watcher: how badly the model sees.

    Raises:
        DiskError: if a file cannot be written.
    """
    rng = np.random.default_rng(seed)
    seen = watcher or Watcher()
    world = generate_crowds(videos, rng)
    counts = {
        "actions": _actions(root / "actions", world, rng, seen),
        "relations": _relations(root / "relations", world, rng, seen),
        "sentences": _grounding(root / "grounding", world, rng, seen),
        "sounds": _write_sound_maps(root / "sound", world, rng, seen),
    }
    # What happens in every video, and in every image of a sound, which is named after its video.
    of = {crowd.video: crowd.category for crowd in world}
    names = [item["file"] for item in json.loads((root / "sound" / "vggss.json").read_text())]
    rows = [*of.items(), *((name, of[name.rpartition("_")[0]]) for name in names)]
    write_text(
        root / "categories.csv",
        "video,category\n" + "".join(f"{video},{category}\n" for video, category in rows),
    )
    facts = ChaosFacts(videos, sum(len(crowd.persons) for crowd in world), **counts)
    write_text(root / FACTS, json.dumps(asdict(facts), indent=2) + "\n")
    return facts


def _actions(root: Path, world: list[Crowd], rng: np.random.Generator, watcher: Watcher) -> int:
    """Keyframes every second; returns the rows of the ground truth."""
    known = {name: number for number, name in enumerate(ACTIONS_OFFICIAL, 1)}
    usual = sorted({known[deed.action] for crowd in world for p in crowd.persons for deed in p.deeds})
    truth, found = [], []
    for crowd in world:
        for frame in range(FPS, FRAMES, FPS):
            at = f"{crowd.video},{FIRST_SECOND + frame // FPS:04d}"
            for person in crowd.persons:
                if not person.start <= frame < person.end:
                    continue
                labels = [known[action] for action in person.doing(frame)]
                corners = _shares(person.at(frame)[None])
                truth += [f"{at},{corners},{label},{person.number}" for label in labels]
                if rng.random() >= watcher.missed:
                    corners = _shares(add_box_jitter(person.at(frame)[None], rng, watcher))
                    found += [f"{at},{corners},{row}" for row in _action_scores(labels, usual, rng, watcher)]
            if rng.random() < watcher.invented:
                x, y = rng.uniform(0, 0.7, 2)
                corners = f"{x:.4f},{y:.4f},{x + 0.12:.4f},{y + 0.3:.4f}"
                found.append(f"{at},{corners},{rng.choice(usual)},{sample_predicted_score(False, rng)}")
    write_text(root / "gt.csv", "".join(f"{row}\n" for row in truth))
    write_text(root / "pred.csv", "".join(f"{row}\n" for row in found))
    write_text(root / "excluded.csv", f"{world[0].video},{FIRST_SECOND + 3:04d}\n")
    items = (f'item {{\n  name: "{name}"\n  id: {number}\n}}\n' for name, number in known.items())
    write_text(root / "action_list.pbtxt", "".join(items))
    return len(truth)


def _action_scores(
    labels: list[int], usual: list[int], rng: np.random.Generator, watcher: Watcher
) -> list[str]:
    """`label,score` of the right labels, now and then of a wrong one in their place, and of one more."""
    rows = []
    for label in labels:
        wrong = rng.random() < watcher.mistaken
        rows.append((int(rng.choice(usual)) if wrong else label, sample_predicted_score(not wrong, rng)))
    rows.append((int(rng.choice(usual)), sample_predicted_score(False, rng)))
    return [f"{label},{score}" for label, score in dict(rows).items()]


def _shares(box: Floats) -> str:
    """One box as shares of the image."""
    return ",".join(f"{v:.{_DIGITS}f}" for v in box[0] / np.array([WIDTH, HEIGHT, WIDTH, HEIGHT]))


def _relations(root: Path, world: list[Crowd], rng: np.random.Generator, watcher: Watcher) -> int:
    found: dict[str, list[dict[str, Any]]] = {}
    for crowd in world:
        # The annotation of one video.
        frames: list[list[dict[str, Any]]] = [[] for _ in range(FRAMES)]
        for person in crowd.persons:
            for frame, box in enumerate(person.boxes.tolist(), person.start):
                corners = dict(zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True))
                frames[frame].append(
                    {"tid": person.number, "bbox": corners, "generated": 0, "tracker": "none"}
                )
        write_text(
            root / "truth" / f"{crowd.video}.json",
            json.dumps(
                {
                    "video_id": crowd.video,
                    "frame_count": FRAMES,
                    "fps": FPS,
                    "width": WIDTH,
                    "height": HEIGHT,
                    "subject/objects": [{"tid": p.number, "category": "person"} for p in crowd.persons],
                    "trajectories": frames,
                    "relation_instances": [
                        {
                            "subject_tid": bond.subject,
                            "predicate": bond.predicate,
                            "object_tid": bond.object,
                            "begin_fid": bond.start,
                            "end_fid": bond.end,
                        }
                        for bond in crowd.bonds
                    ],
                }
            ),
        )
        found[crowd.video] = []
        for bond in crowd.bonds:
            if rng.random() < watcher.missed:
                continue
            prediction = sample_predicted_relation(crowd, bond, rng, watcher)
            subject, other = crowd.persons[prediction.subject], crowd.persons[prediction.object]
            found[crowd.video].append(
                {
                    "triplet": ["person", prediction.predicate, "person"],
                    "score": sample_predicted_score(prediction.predicate == bond.predicate, rng),
                    "duration": [prediction.start, prediction.end],
                    "sub_traj": _trajectory(subject, prediction.start, prediction.end, rng, watcher),
                    "obj_traj": _trajectory(other, prediction.start, prediction.end, rng, watcher),
                }
            )
    write_text(root / "pred.json", json.dumps({"results": found}))
    return sum(len(crowd.bonds) for crowd in world)


def _trajectory(
    person: Person, start: int, end: int, rng: np.random.Generator, watcher: Watcher
) -> list[list[float]]:
    boxes: list[list[float]] = add_box_jitter(
        person.boxes[start - person.start : end - person.start], rng, watcher
    ).tolist()
    return boxes


def _grounding(root: Path, world: list[Crowd], rng: np.random.Generator, watcher: Watcher) -> int:
    """One sentence for everything that somebody does for a while; frames count from 1, as in HC-STVG."""
    sentences: list[dict[str, Any]] = []
    found: dict[str, dict[str, Any]] = {"predictions": {}, "video_predictions": {}}
    for crowd in world:
        for person in crowd.persons:
            deed = person.deeds[len(person.deeds) // 2]
            if deed.end - deed.start < FPS:
                continue
            number = len(sentences)
            boxes = person.boxes[deed.start - person.start : deed.end - person.start]
            sides = np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1)
            sentences.append(
                {
                    "original_video_id": crowd.video,
                    "frame_count": FRAMES,
                    "width": WIDTH,
                    "height": HEIGHT,
                    "tube_start_frame": deed.start + 1,
                    "tube_end_frame": deed.end + 1,
                    "tube_start_time": deed.start / FPS,
                    "tube_end_time": deed.end / FPS,
                    "video_path": f"{crowd.video}.mp4",
                    "caption": f"The person in the {person.clothes} is {deed.action}.",
                    "video_id": number,
                    "trajectory": np.round(sides, 1).tolist(),
                }
            )
            span = sample_predicted_span(deed.start, deed.end, rng, watcher)
            found["video_predictions"][str(number)] = {"sted": [float(frame) for frame in span]}
            # A box in every frame, also where the person is not seen: the one nearest in time
            whole = np.clip(np.arange(FRAMES) - person.start, 0, len(person.boxes) - 1)
            boxes = add_box_jitter(person.boxes[whole], rng, watcher).tolist()
            found["predictions"].update(
                {f"{number}_{frame}": {"boxes": [box]} for frame, box in enumerate(boxes)}
            )
    write_text(root / "test_proc.json", json.dumps(sentences))
    write_text(root / "pred.json", json.dumps(found))
    return len(sentences)


def _write_sound_maps(root: Path, world: list[Crowd], rng: np.random.Generator, watcher: Watcher) -> int:
    items: list[dict[str, Any]] = []
    maps: dict[str, Floats] = {}
    for crowd in world:
        for frame in range(0, FRAMES, _STEP):
            heard = crowd.heard(frame)
            if heard is None:
                continue
            label, person = heard
            name = f"{crowd.video}_{frame:06d}"
            box = person.at(frame) / np.array([WIDTH, HEIGHT, WIDTH, HEIGHT])
            items.append({"file": name, "class": label, "bbox": [np.round(box, _DIGITS).tolist()]})
            maps[name] = simulate_sound_map(person, frame, rng, watcher)
    write_text(root / "vggss.json", json.dumps(items))
    # The arrays as numpy's archive, with the same bytes whenever it is made
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, values in maps.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, values, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue())
    write_bytes(root / "maps.npz", whole.getvalue())
    return len(items)
