"""Domains: pedestrians of one origin, cut into samples once and kept small, so that fits open them fast."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from roadaware import config as configs
from roadaware.datasets import read
from roadaware.errors import InputError, RoadawareError, UsageError
from roadaware.io.files import write_atomically
from roadaware.io.parallel import Workers
from roadaware.protocols.cross_dataset.results import TESTED, read_study_json
from roadaware.scenes.sampling import get_protocol, sample
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.store import open_scenes, save
from roadaware.scenes.tables import Scenes
from roadaware.simulator.config import build_scene_config
from roadaware.simulator.generate import Kept, Order, generate_scenes

if TYPE_CHECKING:
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
        differ = [f"{key} {record[key]}" for key in asked if record[key] != asked[key]]
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
    """The samples of a domain that was prepared, as training takes them; imports torch.

    Args:
        out: folder of the study.
        name: of the domain.
    """
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

    Args:
        wanted: of a study.
        out: its folder.

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
