"""The demo on road events: detections in made-up films linked to tubes by both builders, and judged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadaware.cli import console, text
from roadaware.cli.demo_show import Shows
from roadaware.cli.options import ConfigName

if TYPE_CHECKING:
    from roadaware.analysis.compare_detection import DetectionComparison
    from roadaware.cli.event_runs import EventRun
    from roadaware.reports.page import Section
    from roadaware.scenes.tables import Scenes

FOLDER, DETECTIONS = "events", "detections"
_CONFIGS: tuple[ConfigName, ...] = ("reference", "default")
_NAMES: dict[ConfigName, str] = {"reference": "published builder", "default": "mended builder"}
_THRESHOLDS: dict[str, Any] = {"frame_thresholds": ("0.5",), "video_thresholds": ("0.2", "0.5")}
_SIZE = (682, 512)
"""Of images in detection files; tables have pixels of the films."""


def events(
    output: Path, truth: Path, scenes: Scenes, show: Shows, draws: int, seed: int
) -> tuple[dict[str, Any], list[Section]]:
    """Make up a detector that sees the films badly; link, judge, compare.

    Args:
        output: the demo's folder.
        truth: where the films lie.
        scenes: what is true of them.
        show: prints the steps.
        draws: resamples of videos.
        seed: of the detector and of the resamples.

    Returns:
        What was found, JSON-ready, and its sections of the report.
    """
    from roadaware.analysis.compare_detection import compare
    from roadaware.cli.event_pages import run_section
    from roadaware.cli.event_tables import runs_text
    from roadaware.reports.events import event_comparison_section
    from roadaware.scenes.demo.detector import Detector, perturbed
    from roadaware.scenes.store import save

    root = output / FOLDER
    detections = root / DETECTIONS
    with console.working("a detector"):
        claims = perturbed(scenes, seed=seed, detector=Detector(size=None))
        save(claims, detections, overwrite=True)
    facts = {
        "videos": len(scenes.videos),
        "boxes": len(scenes.boxes),
        "tracks": scenes.boxes["tube"].n_unique(),
        "detections": len(claims.boxes),
    }
    show.step("Link detections to tubes", f"link {detections} --truth {truth} --config default --out TUBES")
    show.say("   {detections:,} detections of {boxes:,} boxes of {tracks:,} road users".format(**facts))
    runs = [_linked_and_judged(root, truth, detections, config, draws, seed) for config in _CONFIGS]
    command = f"evaluate road --truth {truth} --predictions {root / 'default'} --draws {draws}"
    show.step("Score road events: the published tube builder beside the mended one", command)
    show.say(runs_text(runs))
    first, second = reversed(runs)
    matches = (first.matches, second.matches)
    names = (first.name, second.name)
    found = compare(*matches, first.config, draws=max(draws, 1), seed=seed, names=names)
    show.say("\n" + _gains(found))
    values = {run.name: means_of(run) for run in runs}
    return {"facts": facts, "runs": values}, [run_section(first), event_comparison_section(found)]


def _linked_and_judged(
    root: Path, truth: Path, detections: Path, config: ConfigName, draws: int, seed: int
) -> EventRun:
    """Tubes built under one config, saved, and judged as we recommend."""
    from roadaware.cli.event_inputs import of_split, open_claims, open_truth
    from roadaware.cli.event_scoring import Asked, event_run, scored
    from roadaware.cli.linker_choice import linker_config
    from roadaware.linking.link import link
    from roadaware.scenes.store import save

    whole = open_truth(truth, "road")
    tubes = link(open_claims(detections, whole, _SIZE).tables, linker_config(config, "road"))
    save(tubes, root / config, overwrite=True)
    claims = open_claims(root / config, whole, _SIZE)
    asked = Asked("road", draws=draws, seed=seed, details=config == "default", **_THRESHOLDS)
    came = scored(whole, of_split(whole, None), [claims], asked)
    return event_run(came, asked, name=_NAMES[config], split=None, claims=[config])


def _gains(found: DetectionComparison) -> str:
    """How far the tubes of the two builders are apart, kind by kind."""
    import polars as pl

    rows = found.table.filter(
        pl.col("level") == "video", pl.col("threshold") == "0.2", pl.col("label").is_null()
    )
    told = [
        f"{row['kind']}: {100 * row['difference']:+.1f} points "
        f"{text.interval(100 * row['low_video'], 100 * row['high_video'], 1, row['caution_video'])}"
        for row in rows.drop_nulls(["difference", "low_video"]).iter_rows(named=True)
    ]
    lines = text.bullets(told)
    return "\n".join([f"What mending gains in video-mAP at 0.2:\n{lines}", *text.cautions(lines)])


def means_of(run: EventRun) -> dict[str, float | None]:
    """The means of the run in per cent."""
    from roadaware.analysis.event_results import means

    return {
        f"{kind}, {column.words}": None if value.value is None else 100 * value.value
        for (kind, column), value in means(run.summary).cells.items()
    }
