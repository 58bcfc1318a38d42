"""Small sets of road events for tests: tracks with changing labels, holes and several labels at once."""

import numpy as np
import polars as pl
from hypothesis import strategies as st

from roadaware.scenes.tables import Meta, Scenes

WORDS = {
    "agent": ("Ped", "Car"),
    "action": ("Mov", "Stop", "Wait"),
    "location": ("Road", "Pav"),
}
COMPOSITES = {"duplex": ("agent", "action"), "event": ("agent", "action", "location")}


def road_set(tracks, splits=None, children=None, words=WORDS):
    """Scenes of tracks: each is (video, {frame: {kind: [labels]}}); a box lies where a frame is named."""
    boxes, labels = [], []
    for tube, (video, frames) in enumerate(tracks):
        for frame, kinds in frames.items():
            boxes.append((len(boxes), video, frame, tube))
            labels += [(boxes[-1][0], kind, label) for kind in kinds for label in kinds[kind]]
    videos = list(dict.fromkeys(video for video, _ in tracks)) or ["v"]
    listed = {"children": children} if children else {}
    vocabularies = dict(words)
    for kind, rows in listed.get("children", {}).items():
        of = COMPOSITES[kind]
        named = [[words[k][i] for k, i in zip(of, row, strict=True)] for row in rows]
        vocabularies[kind] = tuple(map("-".join, named))
    place = {c: pl.Series([1.0] * len(boxes), dtype=pl.Float32) for c in ("x1_px", "y1_px", "x2_px", "y2_px")}
    return Scenes(
        videos=pl.DataFrame({"video": videos, "splits": [(splits or {}).get(v, []) for v in videos]}).cast(
            {"splits": pl.List(pl.String)}
        ),
        boxes=pl.DataFrame(
            boxes, schema={"box": int, "video": str, "frame": int, "tube": int}, orient="row"
        ).with_columns(**place),
        labels=pl.DataFrame(labels, schema={"box": int, "kind": str, "label": int}, orient="row"),
        tubes=pl.DataFrame(
            {"tube": np.arange(len(tracks)), "video": [v for v, _ in tracks]},
            schema={"tube": pl.Int64, "video": pl.String},
        ),
        meta=Meta("a road", vocabularies=vocabularies, composites=COMPOSITES, notes=listed),
    )


def label_lists(kind):
    return st.lists(st.integers(0, len(WORDS[kind]) - 1), max_size=2, unique=True)


frames = st.dictionaries(
    st.integers(0, 14),
    st.fixed_dictionaries({kind: label_lists(kind) for kind in WORDS}),
    max_size=12,
)
tracks = st.lists(st.tuples(st.sampled_from(["v1", "v2"]), frames), max_size=4)


def plain_stretches(track, kind, max_hole=None):
    """(label, spans) of one track's tubes, frame after frame; `track` is {frame: {kind: labels}}."""
    found, open_tubes = [], {}
    before = None
    for frame in sorted(track):
        held = set(track[frame].get(kind, []))
        if before is not None and max_hole is not None and frame - before - 1 > max_hole:
            open_tubes = {}
        open_tubes = {label: tube for label, tube in open_tubes.items() if label in held}
        for label in sorted(held):
            if label not in open_tubes:
                open_tubes[label] = []
                found.append((label, open_tubes[label]))
            spans = open_tubes[label]
            if spans and spans[-1][1] == frame:
                spans[-1][1] = frame + 1
            else:
                spans.append([frame, frame + 1])
        before = frame
    return sorted(found)


def tubes_of(scenes, kind):
    """{track: [(label, spans)]} of a kind's derived tubes, sorted."""
    found = {}
    if "parent" in scenes.tubes.columns:
        rows = scenes.tubes.join(scenes.tube_labels, on=["tube", "kind"]).filter(pl.col("kind") == kind)
        for row in rows.filter(pl.col("parent").is_not_null()).rows(named=True):
            found.setdefault(row["parent"], []).append((row["label"], row["spans"]))
            assert row["start_frame"] == row["spans"][0][0]
            assert row["end_frame"] == row["spans"][-1][1]
    return {track: sorted(tubes) for track, tubes in found.items()}
