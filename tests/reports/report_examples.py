"""Small made inputs for report pages, and the texts that must never act."""

from __future__ import annotations

import numpy as np
import polars as pl

from roadaware.analysis.audit import Audit, Example, Finding
from roadaware.analysis.audit.checks import Table as NumberTable
from roadaware.config import to_dict
from roadaware.metrics.pedestrians import MetricResult, PedestrianConfig, SampleScores, evaluate_samples
from roadaware.protocols.iv2024 import Cell
from roadaware.scenes.sampling import Iv2024
from roadaware.scenes.tables import Meta, Scenes

PAYLOADS = {
    "script": "<script>document.title='owned'</script>",
    "attribute": '"><img src=x onerror="document.title=\'owned\'">',
    "single quote": "' onmouseover='alert(1)",
    "address": "javascript:alert(1)",
    "end of script": "</script><svg onload=alert(1)>",
    "template": "{{7*7}}{% for x in y %}",
    "line separator": "a\u2028b\u2029c",
    "direction": "abc\u202egnp.exe",
    "isolate": "\u2066x\u2069",
    "terminal": "\x1b[2J\x1b]8;;http://evil.example\x07link\x1b]8;;\x07",
    "formula": "$\\frac{1}{0}$ $x^2$",
    "broken formula": "$\\undefined{",
    "end of data": "]]>",
    "comment": "<!-- -->",
    "entity": "&lt;b&gt;&amp;",
    "style": "</style><style>*{display:none}</style>",
    "nothing": "a\x00b",
    "not in XML": "a\ufffeb\uffff",
    "other alphabet": "歩行者 пешеход 🚶",
    "long": "x" * 20_000,
}
SURROGATE = "a\ud800b"


def state(n_people: int = 12, *, prefix: str = "v", seed: int = 0) -> SampleScores:
    """Seven samples each of some crossing and some other pedestrians, two in a video."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(n_people), 7)
    truth = (who % 3 == 0).astype(int)
    scores = np.clip(0.25 + 0.4 * truth + rng.normal(0, 0.2, len(who)), 0, 1)
    video = np.array([f"{prefix}{p // 2}" for p in who])
    names = np.array([f"{prefix}{p // 2}/0_{p}b" for p in who])
    return SampleScores(scores, truth, names, video, 90 - 10 * (np.arange(len(who)) % 7))


def risk_state(n: int = 240) -> SampleScores:
    """Scores over twelve regions, right more often than not; region 3 is never the truth."""
    rng = np.random.default_rng(1)
    truth = rng.choice([k for k in range(12) if k != 3], n)
    scores = rng.dirichlet(np.ones(12), n)
    scores[np.arange(n), truth] += 0.5
    scores /= scores.sum(axis=1, keepdims=True)
    return SampleScores(scores, truth, np.array([f"v/{i // 4}" for i in range(n)]))


def result(of: SampleScores, *, resamples: int = 0, groups: list[str] | None = None) -> MetricResult:
    """The default evaluation of an action state."""
    return evaluate_samples(of, PedestrianConfig.default("action"), resamples=resamples, groups=groups)


def scenes(of: SampleScores, *, dataset: str = "JAAD", event: int | None = 100) -> Scenes:
    """Tracks of 120 frames whose samples are those of the state, in its order."""
    names = list(dict.fromkeys(of.pedestrian.tolist()))
    assert of.video is not None
    video_of = dict(zip(of.pedestrian.tolist(), of.video.tolist(), strict=True))
    videos = sorted(set(video_of.values()))
    tube_of = {name: tube for tube, name in enumerate(names)}
    frames = list(range(0, 120, 1))
    boxes = [(video_of[name], frame, tube_of[name]) for name in names for frame in frames]
    starts = [10 * (k % 7) for k in range(len(of))]
    return Scenes(
        videos=pl.DataFrame(
            {"video": videos, "n_frames": [120] * len(videos), "splits": [["default/test"]] * len(videos)}
        ),
        tubes=pl.DataFrame(
            {
                "tube": list(tube_of.values()),
                "video": [video_of[name] for name in names],
                "name": [name.split("/")[-1] for name in names],
                "start_frame": [0] * len(names),
                "end_frame": [120] * len(names),
            }
        ),
        boxes=pl.DataFrame(
            {
                "box": range(len(boxes)),
                "video": [video for video, _, _ in boxes],
                "frame": [frame for _, frame, _ in boxes],
                "tube": [tube for _, _, tube in boxes],
                "x1_px": [float(frame) for _, frame, _ in boxes],
                "y1_px": [0.0] * len(boxes),
                "x2_px": [float(frame) + 20 for _, frame, _ in boxes],
                "y2_px": [50.0 + frame for _, frame, _ in boxes],
                "cross": ["crossing" if frame >= 100 else "not-crossing" for _, frame, _ in boxes],
            }
        ),
        samples=pl.DataFrame(
            {
                "sample": range(len(of)),
                "video": of.video.tolist(),
                "tube": [tube_of[name] for name in of.pedestrian.tolist()],
                "start_frame": starts,
                "end_frame": [start + 15 for start in starts],
                "tte_frames": of.tte_frames,
                "event_frame": pl.Series([event] * len(of), dtype=pl.Int64),
                "event_source": ["none" if event is None else "annotated"] * len(of),
                "kind": ["action"] * len(of),
                "label": of.truth,
                "split": ["test"] * len(of),
            }
        ),
        meta=Meta(dataset=dataset, vocabularies={"action": ("not-crossing", "crossing")}),
    )


def audit(text: str = "plain") -> Audit:
    """One serious finding with everything it can carry, one note, one passed and one skipped check."""
    serious = Finding(
        "crossing-without-event",
        "serious",
        399,
        769,
        f"399 of 769 samples have no event {text}",
        f"it matters {text}",
        f"do {text}",
        NumberTable(("split", text), (("test", 399), ("train", None))),
        {"auc": 0.939, "missing": None},
        (Example(text, text, 7, text), Example()),
    )
    note = Finding("track-gaps", "note", 0, 10, "no gaps", "so", "nothing")
    protocol = to_dict(Iv2024.reference("action"))
    return Audit(text, protocol, (serious, note), ("duplicate-names",), {"tags": f"no tags {text}"})


def cells(text: str = "why") -> tuple[Cell, ...]:
    """One cell of every status."""

    def cell(metric: str, model: str, obtained: float | None, status: str, **more: object) -> Cell:
        return Cell("III", "jaad", "action", model, metric, None, 0.58, obtained, status, **more)  # type: ignore[arg-type]

    return (
        cell("precision", "PedFormer", 0.583, "match", beside={text: 0.505}),
        cell("auc", "PedFormer", 0.579, "match_under_assumption", why=text, low=0.57, high=0.59),
        cell("hard_f1", "PedFormer", 0.32, "swapped_in_print", why="this is the number of hard precision"),
        cell("f1", "PedFormer", 0.7, "differs", why="outside the rounding of print"),
        cell("precision", text, None, "not_reproducible", why="no scores were released"),
    )
