"""Cars that move steadily, a detector that sees them all, and a plain loop over a clock of fractions."""

from fractions import Fraction

import numpy as np
import polars as pl

from roadaware.scenes.dense_scores import set_score_layout
from roadaware.scenes.tables import Meta, Predictions, Scenes

SIDES = ("x1_px", "y1_px", "x2_px", "y2_px")
WORDS = {"agent": ("Car", "Bus"), "av_action": ("Go", "Halt")}


def moving(n_frames=40, fps=10.0, speeds=(2.0, 5.0), names=("v",)):
    """(truth, predictions): each car moves so many pixels a frame; the predictions are right, linked and sure."""
    boxes, frames, tubes, labels = [], [], [], []
    for video in names:
        frames += [(video, frame, True, frame // 10 % 2) for frame in range(n_frames)]
        for lane, speed in enumerate(speeds):
            track = len(tubes)
            tubes.append((track, video, 0, n_frames, None, None, None))
            for frame in range(n_frames):
                x = 10 + speed * frame
                boxes.append(
                    (len(boxes), video, frame, track, x, 50.0 * lane, x + 20, 50.0 * lane + 20, lane)
                )
            labels.append((track, lane))
    base = len(tubes)
    for number, (track, lane) in enumerate(labels):
        video = tubes[track][1]
        tubes.append((base + number, video, 0, n_frames, track, "agent", [[0, n_frames]]))
        labels[number] = (base + number, lane)
    table = pl.DataFrame(
        boxes,
        schema={"box": int, "video": str, "frame": int, "tube": int}
        | dict.fromkeys(SIDES, float)
        | {"lane": int},
        orient="row",
    ).sort("video", "frame", maintain_order=True)
    table = table.with_columns(box=pl.int_range(pl.len()))
    of_frames = pl.DataFrame(frames, schema=["video", "frame", "annotated", "av"], orient="row")
    of_tubes = pl.DataFrame(
        tubes,
        schema={
            "tube": pl.Int64,
            "video": pl.String,
            "start_frame": pl.Int64,
            "end_frame": pl.Int64,
            "parent": pl.Int64,
            "kind": pl.String,
            "spans": pl.List(pl.List(pl.Int64)),
        },
        orient="row",
    )
    tube_labels = pl.DataFrame(labels, schema={"tube": int, "label": int}, orient="row").with_columns(
        kind=pl.lit("agent")
    )
    meta = Meta("cars", vocabularies=WORDS)
    truth = Scenes(
        videos=pl.DataFrame({"video": list(names), "fps": [fps] * len(names), "n_frames": n_frames}),
        frames=of_frames.drop("av"),
        boxes=table.drop("lane"),
        labels=table.select("box", kind=pl.lit("agent"), label="lane"),
        tubes=of_tubes,
        tube_labels=tube_labels,
        frame_labels=of_frames.select("video", "frame", kind=pl.lit("av_action"), label="av"),
        meta=meta,
    )
    hot = np.eye(2, dtype=np.float32)
    dense = pl.Array(pl.Float32, 2)
    predictions = Predictions(
        frames=of_frames.select(
            "video", "frame", pl.Series("scores", hot[of_frames["av"].to_numpy()], dtype=dense)
        ),
        boxes=table.drop("lane").with_columns(
            pl.Series("scores", hot[table["lane"].to_numpy()], dtype=dense), score=pl.lit(0.9)
        ),
        tubes=of_tubes.with_columns(score=pl.lit(0.9)),
        tube_labels=tube_labels.with_columns(score=pl.lit(0.9)),
        meta=set_score_layout(set_score_layout(meta, "boxes", ["agent"]), "frames", ["av_action"]),
    )
    return truth, predictions


def plain_schedule(n_frames, fps, work, scheduler):
    """[(frame, instant it is answered)] in fractions of seconds; `work` are fractions by frame."""
    taken = [Fraction(frame) / fps for frame in range(n_frames)]
    if scheduler == "every":
        return [(frame, taken[frame] + work[frame]) for frame in range(n_frames)]
    done, now, next_frame = [], Fraction(0), 0
    while next_frame < n_frames:
        if taken[next_frame] > now:
            now = taken[next_frame]
        frame = next_frame
        if scheduler == "latest":
            frame = max(f for f in range(n_frames) if taken[f] <= now)
        now += work[frame]
        done.append((frame, now))
        next_frame = frame + 1
    return done


def plain_holding(n_frames, fps, outputs, eta=Fraction(0), newest="finished"):
    """For each frame the frame whose output holds at its instant, None before the first."""
    found = []
    for frame in range(n_frames):
        ready = [(at, of) for of, at in outputs if at <= Fraction(frame) / fps - eta]
        key = (lambda pair: pair) if newest == "finished" else (lambda pair: pair[1])
        found.append(max(ready, key=key)[1] if ready else None)
    return found
