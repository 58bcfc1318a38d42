"""Material: the scenes, videos, classes and clips that a recipe names."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from roadaware.datasets import read
from roadaware.errors import UsageError
from roadaware.scenes.composites import find_compositions
from roadaware.scenes.concatenation import concat
from roadaware.scenes.store import open_scenes
from roadaware.scenes.tables import Scenes
from roadaware.tasks.road_events import Classes, VideoTruth, build_video_truth, collect_classes
from roadaware.tasks.videos import Film, Footage, find_videos
from roadaware.training.batches import ClipSet, Fitting, build_mirror, clip_table
from roadaware.training.recipe import Recipe, SourceRecipe

_log = logging.getLogger("roadaware")
_SAVED = "saved"
"""The reader of tables that `roadaware read -o` saved."""


@dataclass(frozen=True, eq=False)
class Material:
    """Training and validation data of a run.

    Args:
        scenes: to learn from.
        films: of these that can be opened.
        classes: that are distinguished.
        judged: scenes to be judged on; None for none.
        judged_films: of these.
        refused: video to why it cannot be opened.
        taught: video to the ground truth of it by a teacher, in place of the scenes.
    """

    scenes: Scenes
    films: list[Film]
    classes: Classes
    judged: Scenes | None
    judged_films: list[Film]
    refused: dict[str, str]
    taught: Mapping[str, VideoTruth] = field(default_factory=dict)

    def clips(self, recipe: Recipe, fit: Fitting) -> ClipSet:
        """The clips to learn from.

        Raises:
            UsageError: if there is no clip, or a kind to balance by is not learnt.
        """
        truth = {**build_video_truth(self.scenes, self.classes), **self.taught}
        held: list[VideoTruth] = [truth[film.video] for film in self.films]
        machine = recipe.machine
        processes = max(1, machine.workers) * max(1, machine.devices)
        footage = Footage(
            self.films,
            [fit.size(film.height, film.width) for film in self.films],
            int(machine.cache_gb * 1e9 / processes),
        )
        table = clip_table(footage, held, recipe, self._counted(recipe.clips.balance_kinds))
        for what, videos in (
            ("are shorter than a clip: their last image is repeated", table.short),
            ("have no annotated frame and are not used", table.bare),
        ):
            if videos:
                _log.warning("%d videos %s (%s)", len(videos), what, _few(videos))
        meta = self.scenes.meta
        mirror = build_mirror(self.classes, find_compositions(meta), meta.vocabularies)
        return ClipSet(footage, held, table, recipe, mirror)

    def _counted(self, kinds: Sequence[str]) -> list[int] | None:
        """The columns of the classes of some kinds; None for all, where none is named.

        Raises:
            UsageError: if one is not distinguished.
        """
        unknown = [kind for kind in kinds if kind not in self.classes.kinds]
        if unknown:
            there = ", ".join(self.classes.kinds)
            raise UsageError(
                f"clips.balance_kinds: nothing of {', '.join(unknown)} is learnt; there are {there}"
            )
        return [n for n, (kind, _) in enumerate(self.classes.names) if kind in kinds] if kinds else None


def load_training_data(recipe: Recipe) -> Material:
    """Read and open the data of a recipe.

    Raises:
        UsageError: if a split or kind is unknown.
        InputError: if annotations or videos cannot be read.
    """
    data = recipe.data
    opened = open_sources(data)
    scenes = opened.scenes
    objects = recipe.model.is_objects
    kinds = data.kinds or (("agent",) if objects else ())
    av_action = data.av_action and not objects
    classes = collect_classes(scenes, kinds, av_action=av_action, only_used=data.only_used_labels)
    return Material(scenes, opened.films, classes, opened.judged, opened.judged_films, opened.refused)


@dataclass(frozen=True, eq=False)
class Sources:
    """Scenes and their videos.

    Args:
        scenes, films, judged, judged_films, refused: as of `Material`.
    """

    scenes: Scenes
    films: list[Film]
    judged: Scenes | None
    judged_films: list[Film]
    refused: dict[str, str]


def open_sources(data: SourceRecipe) -> Sources:
    """Read annotations, and find the videos that they speak of; those that cannot be opened are named.

    Raises:
        UsageError: if a split is unknown.
        InputError: if annotations cannot be read, or no video.
    """
    parts = _parts(data, data.roots)
    scenes, films, refused = _merge_parts(_chosen(parts, data.split), data)
    judged: Scenes | None = None
    judged_films: list[Film] = []
    if data.validation_roots or data.validation_split:
        others = _parts(data, data.validation_roots) if data.validation_roots else parts
        chosen = _chosen(others, data.validation_split)
        judged, judged_films, missing = _merge_parts(chosen, data)
        refused |= missing
    if refused:
        first = next(iter(refused.values()))
        _log.warning("%d videos cannot be opened (%s): %s", len(refused), _few(list(refused)), first)
    return Sources(scenes, films, judged, judged_films, refused)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _parts(data: SourceRecipe, roots: Sequence[str]) -> list[tuple[Path, Scenes]]:
    """Each root's folder and scenes; videos of the same name are distinguished by the names of their roots."""
    found = [(Path(root), _read(data, Path(root))) for root in roots]
    seen: set[str] = set()
    parts = []
    for number, (root, scenes) in enumerate(found):
        names = set(scenes.videos["video"].cast(pl.String).to_list())
        if names & seen:
            # The scenes with longer names of videos and drives.
            prefix = f"{root.name or number}-{number}/"
            tables = {}
            for name, frame in scenes.filled().items():
                held = [c for c in ("video", "scene") if c in frame.columns]
                tables[name] = frame.with_columns(
                    (pl.lit(prefix) + pl.col(c).cast(pl.String)).alias(c) for c in held
                )
            scenes = scenes.with_tables(**tables)
            names = set(scenes.videos["video"].cast(pl.String).to_list())
        seen |= names
        parts.append((root if root.is_dir() else root.parent, scenes))
    return parts


def _read(data: SourceRecipe, root: Path) -> Scenes:
    if data.reader == _SAVED:
        return open_scenes(root)

    return read(data.reader, root, **data.options)


def _chosen(parts: Sequence[tuple[Path, Scenes]], split: str) -> list[tuple[Path, Scenes]]:
    """The parts of a split, where one is named; roots that have none of it are left out.

    Raises:
        UsageError: if no root has it.
    """
    if not split:
        return list(parts)
    found, reasons = [], []
    for root, scenes in parts:
        try:
            found.append((root, scenes.split(split)))
        except UsageError as error:
            reasons.append(str(error))
    if not found:
        raise UsageError(
            f"{reasons[0]} (data.split, data.validation_split; `--set data.split= data.validation_split=` learns from all "
            "videos and judges none)"
        )
    return found


def _merge_parts(
    parts: Sequence[tuple[Path, Scenes]], data: SourceRecipe
) -> tuple[Scenes, list[Film], dict[str, str]]:
    """All parts as one, with the videos that can be opened; scenes without video are left out."""
    films: list[Film] = []
    refused: dict[str, str] = {}
    for root, scenes in parts:
        some, missing = find_videos(scenes, Path(data.media) if data.media else root, data.films)
        films += some
        refused |= missing
    whole = parts[0][1] if len(parts) == 1 else concat([scenes for _, scenes in parts])
    return (whole.only([film.video for film in films]) if refused else whole), films, refused
