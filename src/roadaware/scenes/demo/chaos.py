"""A made-up crowd on disk: truth and claims of four tasks, each in the files its own evaluators read."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.demo import crowd_claims as claims
from roadaware.scenes.demo.crowd import FPS, FRAMES, HEIGHT, WIDTH, Crowd, Person, crowds
from roadaware.scenes.demo.crowd_claims import Watcher
from roadaware.scenes.disk import atomic_write, disk_error
from roadaware.scenes.vocabularies import ACTIONS_OFFICIAL

FACTS = "facts.json"
FIRST_SECOND = 900
_DIGITS = 4
_STEP = 20


@dataclass(frozen=True)
class ChaosFacts:
    """What was written, for comparison with what is found.

    Args:
        videos: how many.
        persons: in all of them.
        actions: rows of the truth of actions: one per box and label.
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
    """Write truth and claims of the four tasks into folders and say what is in them; same seed, same bytes.

    `actions` holds gt.csv, pred.csv, action_list.pbtxt and excluded.csv in the form of AVA; `relations`
    truth/VIDEO.json and pred.json in that of VidVRD; `grounding` test_proc.json and pred.json as TubeDETR
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
    world = crowds(videos, rng)
    counts = {
        "actions": _actions(root / "actions", world, rng, seen),
        "relations": _relations(root / "relations", world, rng, seen),
        "sentences": _grounding(root / "grounding", world, rng, seen),
        "sounds": _sound(root / "sound", world, rng, seen),
    }
    _write(root / "categories.csv", _categories(world, root / "sound" / "vggss.json"))
    facts = ChaosFacts(videos, sum(len(crowd.persons) for crowd in world), **counts)
    _write(root / FACTS, json.dumps(asdict(facts), indent=2) + "\n")
    return facts


def _categories(world: list[Crowd], sounds: Path) -> str:
    """What happens in every video, and in every picture of a sound, which is named after its video."""
    of = {crowd.video: crowd.category for crowd in world}
    names = [item["file"] for item in json.loads(sounds.read_text())]
    rows = [*of.items(), *((name, of[name.rpartition("_")[0]]) for name in names)]
    return "video,category\n" + "".join(f"{video},{category}\n" for video, category in rows)


def _actions(root: Path, world: list[Crowd], rng: np.random.Generator, watcher: Watcher) -> int:
    """Keyframes every second; returns the rows of the truth."""
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
                    corners = _shares(claims.wavering(person.at(frame)[None], rng, watcher))
                    found += [f"{at},{corners},{row}" for row in _action_scores(labels, usual, rng, watcher)]
            if rng.random() < watcher.invented:
                x, y = rng.uniform(0, 0.7, 2)
                corners = f"{x:.4f},{y:.4f},{x + 0.12:.4f},{y + 0.3:.4f}"
                found.append(f"{at},{corners},{rng.choice(usual)},{claims.claimed_score(False, rng)}")
    _write(root / "gt.csv", "".join(f"{row}\n" for row in truth))
    _write(root / "pred.csv", "".join(f"{row}\n" for row in found))
    _write(root / "excluded.csv", f"{world[0].video},{FIRST_SECOND + 3:04d}\n")
    items = (f'item {{\n  name: "{name}"\n  id: {number}\n}}\n' for name, number in known.items())
    _write(root / "action_list.pbtxt", "".join(items))
    return len(truth)


def _action_scores(
    labels: list[int], usual: list[int], rng: np.random.Generator, watcher: Watcher
) -> list[str]:
    """`label,score` of the right labels, now and then of a wrong one in their place, and of one more."""
    rows = []
    for label in labels:
        wrong = rng.random() < watcher.mistaken
        rows.append((int(rng.choice(usual)) if wrong else label, claims.claimed_score(not wrong, rng)))
    rows.append((int(rng.choice(usual)), claims.claimed_score(False, rng)))
    return [f"{label},{score}" for label, score in dict(rows).items()]


def _shares(box: Floats) -> str:
    """One box as shares of the picture."""
    return ",".join(f"{v:.{_DIGITS}f}" for v in box[0] / np.array([WIDTH, HEIGHT, WIDTH, HEIGHT]))


def _relations(root: Path, world: list[Crowd], rng: np.random.Generator, watcher: Watcher) -> int:
    found: dict[str, list[dict[str, Any]]] = {}
    for crowd in world:
        _write(root / "truth" / f"{crowd.video}.json", json.dumps(_vidvrd(crowd)))
        found[crowd.video] = []
        for bond in crowd.bonds:
            if rng.random() < watcher.missed:
                continue
            claim = claims.claimed_bond(crowd, bond, rng, watcher)
            subject, other = crowd.persons[claim.subject], crowd.persons[claim.object]
            found[crowd.video].append(
                {
                    "triplet": ["person", claim.predicate, "person"],
                    "score": claims.claimed_score(claim.predicate == bond.predicate, rng),
                    "duration": [claim.start, claim.end],
                    "sub_traj": _trajectory(subject, claim.start, claim.end, rng, watcher),
                    "obj_traj": _trajectory(other, claim.start, claim.end, rng, watcher),
                }
            )
    _write(root / "pred.json", json.dumps({"results": found}))
    return sum(len(crowd.bonds) for crowd in world)


def _trajectory(
    person: Person, start: int, end: int, rng: np.random.Generator, watcher: Watcher
) -> list[list[float]]:
    boxes: list[list[float]] = claims.wavering(
        person.boxes[start - person.start : end - person.start], rng, watcher
    ).tolist()
    return boxes


def _vidvrd(crowd: Crowd) -> dict[str, Any]:
    """The annotation of one video."""
    frames: list[list[dict[str, Any]]] = [[] for _ in range(FRAMES)]
    for person in crowd.persons:
        for frame, box in enumerate(person.boxes.tolist(), person.start):
            corners = dict(zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True))
            frames[frame].append({"tid": person.number, "bbox": corners, "generated": 0, "tracker": "none"})
    return {
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
            span = claims.claimed_span(deed.start, deed.end, rng, watcher)
            found["video_predictions"][str(number)] = {"sted": [float(frame) for frame in span]}
            found["predictions"].update(_frame_boxes(number, person, rng, watcher))
    _write(root / "test_proc.json", json.dumps(sentences))
    _write(root / "pred.json", json.dumps(found))
    return len(sentences)


def _frame_boxes(
    number: int, person: Person, rng: np.random.Generator, watcher: Watcher
) -> dict[str, dict[str, Any]]:
    """A box in every frame, also where the person is not seen: the one nearest in time."""
    whole = np.clip(np.arange(FRAMES) - person.start, 0, len(person.boxes) - 1)
    boxes = claims.wavering(person.boxes[whole], rng, watcher).tolist()
    return {f"{number}_{frame}": {"boxes": [box]} for frame, box in enumerate(boxes)}


def _sound(root: Path, world: list[Crowd], rng: np.random.Generator, watcher: Watcher) -> int:
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
            maps[name] = claims.sound_map(person, frame, rng, watcher)
    _write(root / "vggss.json", json.dumps(items))
    _write_bytes(root / "maps.npz", _archive(maps))
    return len(items)


def _archive(maps: dict[str, Floats]) -> bytes:
    """The arrays as numpy's archive, with the same bytes whenever it is made."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, values in maps.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, values, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue())
    return whole.getvalue()


def _write(path: Path, text: str) -> None:
    _write_bytes(path, text.encode())


def _write_bytes(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(path, len(data), error) from error
    atomic_write(path, data)
