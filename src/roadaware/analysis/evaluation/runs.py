"""What comes of an evaluation, by kind of task: the settings, the numbers and what they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from roadaware.metrics.pedestrians import PedestrianConfig
from roadaware.metrics.scores import SampleScores

if TYPE_CHECKING:
    import polars as pl

    from roadaware.analysis.excerpts import Clip, Excerpt
    from roadaware.analysis.scene_tasks import SceneTask
    from roadaware.analysis.worst_tubes import Strip
    from roadaware.metrics.detection.config import DetectionConfig
    from roadaware.metrics.detection.matches import Matches
    from roadaware.metrics.metric_state import MetricResult, SceneResult


@dataclass(frozen=True)
class Run:
    """One evaluation of pedestrians.

    Args:
        name: of the model, for tables and images.
        state: the scores beside their truth.
        config: how they were judged.
        result: what came out.
        resamples: bootstrap resamples.
        seed: of the resamples.
        protocol: what the samples are, such as `jaad-action@iv2024`; empty for samples of one's own.
        facts: what else belongs to it, JSON-ready.
        groups: (n,) scenario of each sample, where they were asked for.
        excerpts: moments that are to be drawn, where they were asked for; a folder keeps the clips of them.
        clips: those that were drawn.
    """

    name: str
    state: SampleScores
    config: PedestrianConfig
    result: MetricResult
    resamples: int
    seed: int
    protocol: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    groups: Sequence[str | None] | None = None
    excerpts: tuple[Excerpt, ...] = ()
    clips: tuple[Clip, ...] = ()


@dataclass(frozen=True)
class EventRun:
    """One evaluation of road events.

    Args:
        name: of the model, for tables and images.
        dataset: of the truth.
        config: how it was judged.
        summary: every metric with level, overlap, threshold, kind and label.
        matches: level (`frame`, `video:stiou`, `av_action`) to its matches.
        strips: tubes that went wrong.
        resamples: bootstrap resamples.
        seed: of the resamples.
        facts: what else belongs to it, JSON-ready.
        notes: what else happened, in words.
        faults: what mending each kind of fault would gain, where it was looked at.
        excerpts: moments that are to be drawn, where they were asked for; a folder keeps the clips of them.
        clips: those that were drawn.
    """

    name: str
    dataset: str
    config: DetectionConfig
    summary: pl.DataFrame
    matches: dict[str, Matches]
    strips: tuple[Strip, ...] = ()
    resamples: int = 0
    seed: int = 0
    facts: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    faults: pl.DataFrame | None = None
    excerpts: tuple[Excerpt, ...] = ()
    clips: tuple[Clip, ...] = ()


@dataclass(frozen=True, eq=False)
class SceneRun:
    """One evaluation of a task on scenes.

    Args:
        name: of the model, for tables and images.
        task: what was asked.
        config_name: how it was judged, by name.
        result: what came out.
        resamples: bootstrap resamples.
        seed: of the resamples.
        facts: what else belongs to it, JSON-ready: truth, its digest, predictions, findings.
        pictures: what the images of its report show, JSON-ready.
    """

    name: str
    task: SceneTask
    config_name: str
    result: SceneResult
    resamples: int = 0
    seed: int = 0
    facts: dict[str, Any] = field(default_factory=dict)
    pictures: dict[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> dict[str, Any]:
        """How it was judged, as plain data."""
        return self.result.config
