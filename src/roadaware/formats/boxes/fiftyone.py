"""FiftyOne written: a FiftyOneDataset of videos in JSON, as `datasets.fiftyone` and FiftyOne's own importer read it.

Without a `version` in `metadata.json` the importer takes the plain form that is written here, which needs no ids of a
database. Boxes are Detections with `bounding_box` in shares of the image, `index` (the track) and `ignore`, in the field
`ground_truth` of their frame, predictions with `confidence` in `predictions`; frames count from 1, a split is a tag.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import polars as pl

from roadaware.datasets.fiftyone import METADATA, PREDICTED, SAMPLES, TRUTH
from roadaware.formats.boxes.flat import Files, FlatBoxes, encode_classes, name_file


def write_fiftyone(held: FlatBoxes) -> Files:
    """Names and contents of the files of a set, or of predictions."""
    return build_dataset(held, {PREDICTED if held.scored else TRUTH: held})


def build_dataset(
    held: FlatBoxes,
    sides: Mapping[str, FlatBoxes],
    *,
    paths: Mapping[str, str] | None = None,
    name: str = "roadaware",
) -> Files:
    """Names and contents of the files of a dataset.

    Args:
        held: whose videos are the samples.
        sides: field to the boxes in it: ground truth, predictions.
        paths: video to where its film lies (default: VIDEO.mp4).
        name: of the dataset.
    """
    fields = [(field, _list_texts(held, side)) for field, side in sides.items()]
    samples = []
    for row in held.videos.iter_rows(named=True):
        video = row["video"]
        file = name_file(f"frames/{video}", ".json")
        frames: dict[int, list[str]] = {}
        for field, texts in fields:
            for number, text in texts.get(video, ()):
                shown = f'"{field}": {{"_cls": "Detections", "detections": [{text or ""}]}}'
                frames.setdefault(number + 1, []).append(shown)
        listed = (f'"{n}": {{"frame_number": {n}, {", ".join(held)}}}' for n, held in sorted(frames.items()))
        yield file, ('{"frames": {' + ",\n".join(listed) + "}}\n").encode()
        samples.append(
            {
                "filepath": (paths or {}).get(video) or f"{video}.mp4",
                "tags": [row["split"]] if row["split"] else [],
                "metadata": {
                    "_cls": "VideoMetadata",
                    "frame_width": row["width_px"],
                    "frame_height": row["height_px"],
                    "frame_rate": row["fps"],
                    "total_frame_count": row["n_frames"],
                },
                "video": video,
                "frames": file,
            }
        )
    classes = list(dict.fromkeys(word for side in sides.values() for word in side.classes))
    metadata = {"name": name, "media_type": "video", "default_classes": classes, "info": {}}
    yield SAMPLES, json.dumps({"samples": samples}, allow_nan=False).encode()
    yield METADATA, json.dumps(metadata).encode()


def _list_texts(held: FlatBoxes, side: FlatBoxes) -> dict[str, list[tuple[int, str | None]]]:
    """Video to its frames in their order, each with its detections as JSON."""
    size = held.videos.select("video", "width_px", "height_px")
    boxes = side.boxes.join(size, on="video", how="inner", maintain_order="left")
    x1, y1, x2, y2 = (pl.col(f"{corner}_px").cast(pl.Float64) for corner in ("x1", "y1", "x2", "y2"))
    shares = (x1 / pl.col("width_px"), y1 / pl.col("height_px"), (x2 - x1) / pl.col("width_px"),
              (y2 - y1) / pl.col("height_px"))  # fmt: skip
    # A part whose value is null is null, and left out.
    parts = (
        pl.lit('{"_cls": "Detection", "tags": [], "attributes": {}'),
        # Ten decimals, as YOLO's: a billionth of a pixel, which comes back as the same digits.
        pl.format('"bounding_box": [{}, {}, {}, {}]', *(share.round(10) for share in shares)),
        pl.format('"label": {}', encode_classes(side.classes)),
        pl.format('"index": {}', "track"),
        pl.format('"confidence": {}', pl.col("score").cast(pl.Float64)),
        pl.when(pl.col("ignore").fill_null(value=False)).then(pl.lit('"ignore": true')),
    )
    text = pl.concat_str(pl.concat_str(*parts, separator=", ", ignore_nulls=True), pl.lit("}"))
    rows = boxes.select("video", "frame", text=text).group_by("video", "frame", maintain_order=True).agg(
        pl.col("text").str.join(",\n")
    )  # fmt: skip
    frames = side.frames.select("video", "frame").join(
        rows, on=["video", "frame"], how="left", maintain_order="left"
    )
    found: dict[str, list[tuple[int, str | None]]] = {}
    for video, frame, shown in frames.iter_rows():
        found.setdefault(video, []).append((frame, shown))
    return found
