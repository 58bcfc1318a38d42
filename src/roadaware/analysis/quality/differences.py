"""Items of annotations, one row each: the rules that they keep, and the differences of two rounds."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.analysis.quality.config import MOST_BYTES, Dictionary, QualityConfig
from roadaware.errors import InputError
from roadaware.io.files import read_regular
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

KEY = ("what", "video", "name", "object", "predicate", "frame")
"""What an item is known by in every file; text that does not apply is empty, a frame -1."""
WHATS = ("video", "person", "span", "box", "relation", "sentence", "sound", "sound box")
EDGES = ("x1", "y1", "x2", "y2")
COLUMNS: dict[str, Any] = {
    "what": pl.String,
    "video": pl.String,
    "name": pl.String,
    "object": pl.String,
    "predicate": pl.String,
    "frame": pl.Int64,
    **dict.fromkeys(EDGES, pl.Float64),
    "start": pl.Float64,
    "end": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "known": pl.Boolean,
    "itself": pl.Boolean,
    "labels": pl.List(pl.String),
    "text": pl.String,
    "annotator": pl.String,
}
"""Edges in pixels and times in frames of the file; `low` and `high` bound where the item may lie in time:
both tracks of a relation, the start of a box's sound; `known` is false where a person is due and absent."""
_EXACT = 1e-9
"""Differences below this share of the image come from decimals, not from annotators."""


def build_items(scenes: Scenes, config: QualityConfig, dictionary: Dictionary) -> pl.DataFrame:
    """The items of a file, with the scale of their video.

    Args:
        scenes: one annotator's work.
        config: the resolution and the frame rate to which `scale_x`, `scale_y` and `scale_t` lead.
        dictionary: spells the labels.

    Returns:
        One row per item: `COLUMNS`, width, height, fps, scale_x, scale_y, scale_t and slack_px.
    """
    labels = label_rows(scenes, dictionary)
    parts = [
        _with_labels(scenes.videos.with_columns(what=pl.lit("video")), labels, "video"),
        _persons(scenes, labels),
        _boxes(scenes, labels),
        _relations(scenes, labels),
        _sentences(scenes),
        _sounds(scenes, labels),
    ]
    schema = pl.Schema(COLUMNS)
    # The columns of an item, null where a table has none; dictionary columns become text
    rows = pl.concat(
        [
            part.select(
                [
                    (pl.col(name).cast(pl.String) if dtype == pl.String else pl.col(name))
                    if name in part.columns
                    else pl.lit(None, dtype=dtype).alias(name)
                    for name, dtype in COLUMNS.items()
                ]
            ).cast(schema)
            for part in parts
        ]
    )
    rows = rows.with_columns(
        pl.col("what", "video", "name", "object", "predicate").fill_null(""),
        pl.col("frame").fill_null(-1),
        pl.col("labels").fill_null([]),
        pl.col("annotator").fill_null(pl.lit(scenes.meta.notes.get("annotator"), dtype=pl.String)),
    )
    return rows.join(_scales(scenes, config), on="video", how="left", maintain_order="left")


def label_rows(scenes: Scenes, dictionary: Dictionary) -> pl.DataFrame:
    """Every label once per item: `of` (box, tube, relation, sound, video), `key`, `kind`, `label`, `known`.

    `label` is spelled as the dictionary does; `known` is null for kinds that it does not have.
    """
    text, name = pl.col("video").cast(pl.String), pl.col("category").cast(pl.String)
    parts = [
        _list_labels(scenes, "labels", "box"),
        _list_labels(scenes, "tube_labels", "tube"),
        _list_labels(scenes, "relations", "relation", kind="predicate", label="predicate"),
        _list_labels(scenes, "sounds", "sound", kind="sound", label="label"),
    ]
    if "category" in scenes.videos.columns:
        events = scenes.videos.select(of=pl.lit("video"), key=text, kind=pl.lit("event"), raw=name)
        parts.append(events.drop_nulls("raw"))
    rows = pl.concat(parts)
    pairs = rows.select("kind", "raw").unique(maintain_order=True)
    spelled = [
        (kind, raw, dictionary.standard(kind, raw) or raw, _verdict(dictionary, kind, raw))
        for kind, raw in pairs.iter_rows()
    ]
    schema = {"kind": pl.String, "raw": pl.String, "label": pl.String, "known": pl.Boolean}
    return rows.join(
        pl.DataFrame(spelled, schema=schema, orient="row"), on=["kind", "raw"], maintain_order="left"
    )


def _verdict(dictionary: Dictionary, kind: str, raw: str) -> bool | None:
    return None if kind not in dictionary.kinds else dictionary.standard(kind, raw) is not None


def _list_labels(
    scenes: Scenes, table: str, key: str, *, kind: str | None = None, label: str = "label"
) -> pl.DataFrame:
    """The labels of a table by name."""
    schema = {"of": pl.String, "key": pl.String, "kind": pl.String, "raw": pl.String}
    frame: pl.DataFrame = getattr(scenes, table)
    if frame.is_empty() or label not in frame.columns:
        return pl.DataFrame(schema=schema)
    kinds = pl.lit(kind) if kind else pl.col("kind").cast(pl.String)
    rows = frame.select(of=pl.lit(key), key=pl.col(key).cast(pl.String), kind=kinds, place=pl.col(label))
    words = [
        (kind, place, word)
        for kind, words in scenes.meta.vocabularies.items()
        for place, word in enumerate(words)
    ]
    known = pl.DataFrame(words, schema={"kind": pl.String, "place": pl.Int64, "raw": pl.String}, orient="row")
    named = rows.drop_nulls("place").join(known, on=["kind", "place"], how="left", maintain_order="left")
    return named.select("of", "key", "kind", pl.col("raw").fill_null(pl.format("label {}", "place")))


def _join_labels(labels: pl.DataFrame, of: str) -> pl.DataFrame:
    """One list of `kind: label` for each key."""
    shown = pl.format("{}: {}", "kind", "label")
    held = labels.filter(pl.col("of") == of).select("key", shown=shown)
    return held.group_by("key").agg(labels=pl.col("shown").unique().sort())


def _with_labels(rows: pl.DataFrame, labels: pl.DataFrame, of: str) -> pl.DataFrame:
    key = pl.col(of).cast(pl.String).alias("key")
    return rows.with_columns(key).join(_join_labels(labels, of), on="key", how="left", maintain_order="left")


def _text(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.String)


def _column(frame: pl.DataFrame, name: str, dtype: Any) -> pl.Expr:
    return pl.col(name).cast(dtype) if name in frame.columns else pl.lit(None, dtype=dtype).alias(name)


def list_tracks(scenes: Scenes) -> pl.DataFrame:
    """Every tube that owns boxes or names a person: tube, video, name, start, end, boxes.

    The end is the later of the stated one and that of the last box, which holds until the next is due.
    """
    boxes = scenes.boxes.filter(pl.col("tube").is_not_null()) if "tube" in scenes.boxes.columns else None
    if scenes.tubes.is_empty():
        schema = {"tube": pl.Int64, "video": pl.String, "name": pl.String}
        return pl.DataFrame(schema={**schema, "start": pl.Int64, "end": pl.Int64, "boxes": pl.UInt32})
    whole = scenes.tubes.filter(_column(scenes.tubes, "parent", pl.Int64).is_null())
    seen = pl.DataFrame(schema={"tube": pl.Int64, "first": pl.Int64, "last": pl.Int64, "boxes": pl.UInt32})
    if boxes is not None and len(boxes):
        frames = pl.col("frame").unique().sort()
        seen = boxes.group_by("tube").agg(
            first=frames.first(),
            last=frames.last() + frames.diff().min().fill_null(1),
            boxes=pl.len(),
        )
    start, end = (_column(whole, name, pl.Int64) for name in ("start_frame", "end_frame"))
    return whole.join(seen, on="tube", how="left", maintain_order="left").select(
        "tube",
        _text("video"),
        pl.coalesce(_column(whole, "name", pl.String), _query_names(scenes, whole)).alias("name"),
        pl.coalesce(start, "first").alias("start"),
        pl.coalesce(end, "last").alias("end"),
        pl.max_horizontal(end, "last").alias("reach"),
        pl.col("boxes").fill_null(0),
    )


def _query_names(scenes: Scenes, tubes: pl.DataFrame) -> pl.Series:
    """For each tube the name of the first sentence that speaks of it."""
    named = scenes.queries
    if named.is_empty() or not {"tube", "name"} <= set(named.columns):
        return pl.Series("query", [None] * len(tubes), dtype=pl.String)
    first = named.drop_nulls("tube").unique("tube", keep="first").select("tube", query=_text("name"))
    return tubes.select("tube").join(first, on="tube", how="left", maintain_order="left")["query"]


def _persons(scenes: Scenes, labels: pl.DataFrame) -> pl.DataFrame:
    held = list_tracks(scenes)
    if held.is_empty():
        return held
    rows = scenes.tubes.select("tube", _column(scenes.tubes, "annotator", pl.String))
    what = pl.when(pl.col("boxes") > 0).then(pl.lit("person")).otherwise(pl.lit("span"))
    rows = held.join(rows, on="tube", maintain_order="left").with_columns(what=what)
    return _with_labels(rows, labels, "tube")


def _boxes(scenes: Scenes, labels: pl.DataFrame) -> pl.DataFrame:
    frame = scenes.boxes
    rows = frame.select(
        "box",
        _text("video"),
        "frame",
        *(pl.col(corner).cast(pl.Float64).alias(edge) for corner, edge in zip(CORNERS, EDGES, strict=True)),
        _column(frame, "tube", pl.Int64),
        _column(frame, "sound", pl.Int64),
        _column(frame, "annotator", pl.String),
    )
    owners = list_tracks(scenes).select("tube", person="name")
    rows = rows.join(owners, on="tube", how="left", maintain_order="left")
    rows = rows.join(_heard(scenes), on="sound", how="left", maintain_order="left")
    of_sound = pl.col("tube").is_null() & pl.col("sound").is_not_null()
    known = pl.col("tube").is_not_null() | pl.col("sound").is_not_null() | pl.lit(scenes.tubes.is_empty())
    rows = rows.with_columns(
        what=pl.when(of_sound).then(pl.lit("sound box")).otherwise(pl.lit("box")),
        name=pl.when(of_sound).then(pl.col("heard")).otherwise(pl.col("person")),
        known=known,
        low=pl.col("from"),
        high=pl.col("from"),
    )
    return _with_labels(rows, labels, "box")


def _heard(scenes: Scenes) -> pl.DataFrame:
    """The name of every sound, from which frame it is heard, and until which where a column says so."""
    sounds = scenes.sounds
    if sounds.is_empty():
        schema: dict[str, Any] = {"sound": pl.Int64, "heard": pl.String, "from": pl.Float64}
        return pl.DataFrame(schema={**schema, "until": pl.Float64})
    rates = scenes.videos.select(_text("video"), _column(scenes.videos, "fps", pl.Float64))
    rows = sounds.with_columns(_text("video")).join(rates, on="video", how="left", maintain_order="left")
    # Seconds are kept in single precision: a hundredth of a frame is the most they distinguish.
    timed, until = ((_column(sounds, name, pl.Float64) * pl.col("fps")).round(2) for name in ("t_s", "end_s"))
    return rows.select(
        "sound",
        _column(sounds, "name", pl.String).alias("heard"),
        pl.coalesce(timed, _column(sounds, "frame", pl.Float64)).alias("from"),
        until.alias("until"),
    )


def _relations(scenes: Scenes, labels: pl.DataFrame) -> pl.DataFrame:
    frame = scenes.relations
    held = list_tracks(scenes).select("tube", "name", "start", "reach", "boxes") if len(frame) else None
    if held is None:
        return frame
    words = labels.filter(pl.col("of") == "relation").select(
        relation=pl.col("key").cast(pl.Int64), word="label"
    )
    rows = frame.join(words, on="relation", how="left", maintain_order="left")
    for role in ("subject", "object"):
        own = held.rename({name: f"{role}_{name}" for name in held.columns if name != "tube"})
        rows = rows.join(own, left_on=role, right_on="tube", how="left", maintain_order="left")
    rows = rows.select(
        "relation",
        "video",
        _column(frame, "start_frame", pl.Int64).alias("start"),
        _column(frame, "end_frame", pl.Int64).alias("end"),
        _column(frame, "annotator", pl.String),
        what=pl.lit("relation"),
        name="subject_name",
        object="object_name",
        predicate="word",
        low=pl.max_horizontal("subject_start", "object_start"),
        high=pl.min_horizontal("subject_reach", "object_reach"),
        known=(pl.col("subject_boxes") > 0) & (pl.col("object_boxes") > 0),
        itself=pl.col("subject") == pl.col("object"),
    )
    return _with_labels(rows, labels, "relation")


def _sentences(scenes: Scenes) -> pl.DataFrame:
    frame = scenes.queries
    if frame.is_empty():
        return frame
    tube = _column(frame, "tube", pl.Int64).alias("tube")
    held = list_tracks(scenes).select("tube", "boxes")
    rows = frame.with_columns(tube).join(held, on="tube", how="left", maintain_order="left")
    return rows.with_columns(
        what=pl.lit("sentence"),
        start=_column(frame, "start_frame", pl.Int64),
        end=_column(frame, "end_frame", pl.Int64),
        known=pl.col("tube").is_null() | (pl.col("boxes") > 0),
    )


def _sounds(scenes: Scenes, labels: pl.DataFrame) -> pl.DataFrame:
    if scenes.sounds.is_empty():
        return scenes.sounds
    rows = scenes.sounds.drop("frame", strict=False)
    rows = rows.join(_heard(scenes), on="sound", how="left", maintain_order="left")
    return _with_labels(
        rows.with_columns(what=pl.lit("sound"), start=pl.col("from"), end=pl.col("until")), labels, "sound"
    )


def _scales(scenes: Scenes, config: QualityConfig) -> pl.DataFrame:
    """For each video what leads from its pixels and frames to those of the limits."""
    frame, (width, height) = scenes.videos, config.resolution
    # float32 keeps about seven digits: a tighter bound would report its rounding as a moved box.
    exact = _EXACT if scenes.boxes.schema["x1_px"] == pl.Float64 else 4 * float(np.finfo(np.float32).eps)
    rate = pl.col("fps") if config.frame_rate is None else pl.lit(config.frame_rate)
    sizes = [(_column(frame, f"{name}_px", pl.Float64)).alias(name) for name in ("width", "height")]
    rows = frame.select(_text("video"), *sizes, _column(frame, "fps", pl.Float64))
    return rows.with_columns(
        scale_x=(width / pl.col("width")).fill_null(1.0),
        scale_y=(height / pl.col("height")).fill_null(1.0),
        scale_t=(rate / pl.col("fps")).fill_null(1.0),
        slack_px=pl.lit(exact * max(width, height)),
    )


_AXES = ("x", "y", "x", "y")
_TIME_SLACK = 1e-3
_EXCUSED = "excused"
FINDING = {"item": pl.UInt32, "stage": pl.String, "rule": pl.String, "says": pl.String}


def add_differences(wide: pl.DataFrame, a: int, b: int, config: QualityConfig) -> pl.DataFrame:
    """Add what two files differ by, null where an item is not in both.

    Args:
        wide: what `aligned` gave.
        a: the earlier file.
        b: the later file.
        config: the limits.

    Returns:
        With the suffix `_<a><b>`: edge_ref (greatest difference of an edge, at the resolution of the
        limits), worst_edge, edge_px (the same in pixels of file a), start_ref and end_ref (differences at the
        frame rate of the limits), frame_diff (the greater, in frames of file a), iou; and whether they
        exceed: edge_over, time_over.
    """
    pair = f"_{a}{b}"
    edges = [
        (
            pl.col(f"{edge}_{a}") * pl.col(f"scale_{axis}_{a}")
            - pl.col(f"{edge}_{b}") * pl.col(f"scale_{axis}_{b}")
        )
        .abs()
        .alias(f"{edge}{pair}")
        for edge, axis in zip(EDGES, _AXES, strict=True)
    ]
    times = [
        (
            pl.col(f"{name}_{b}") * pl.col(f"scale_t_{b}") - pl.col(f"{name}_{a}") * pl.col(f"scale_t_{a}")
        ).alias(f"{name}_ref{pair}")
        for name in ("start", "end")
    ]
    # Intersection over union of the boxes of two files, each brought to one resolution.
    one, two = _edges(a), _edges(b)
    sides = [
        (pl.min_horizontal(one[k + 2], two[k + 2]) - pl.max_horizontal(one[k], two[k])).clip(lower_bound=0)
        for k in (0, 1)
    ]
    known = one[0].is_not_null() & two[0].is_not_null()
    inter = sides[0] * sides[1]
    union = (
        sum(((edges[2] - edges[0]) * (edges[3] - edges[1]) for edges in (one, two)), start=pl.lit(0.0))
        - inter
    )
    rows = wide.with_columns(
        *edges,
        *times,
        pl.when(known & (union > 0)).then(inter / union).when(known).then(0.0).alias(f"iou{pair}"),
    )
    names = [f"{edge}{pair}" for edge in EDGES]
    late = pl.max_horizontal(pl.col(f"start_ref{pair}").abs(), pl.col(f"end_ref{pair}").abs())
    worst = pl.concat_list(names).list.arg_max().replace_strict(dict(enumerate(EDGES)), default=None)
    rows = rows.with_columns(
        pl.max_horizontal(names).alias(f"edge_ref{pair}"),
        pl.when(pl.col(names[0]).is_not_null()).then(worst).alias(f"worst_edge{pair}"),
        # What is a whole number of frames stays one.
        (late / pl.col(f"scale_t_{a}")).round(6).alias(f"frame_diff{pair}"),
    )
    across = pl.col(f"worst_edge{pair}").str.starts_with("x")
    scale = pl.when(across).then(pl.col(f"scale_x_{a}")).otherwise(f"scale_y_{a}")
    rows = rows.with_columns((pl.col(f"edge_ref{pair}") / scale).alias(f"edge_px{pair}"))
    slack = pl.max_horizontal(f"slack_px_{a}", f"slack_px_{b}")
    return rows.with_columns(
        (pl.col(f"edge_ref{pair}") > config.edge_px + slack).alias(f"edge_over{pair}"),
        (late > config.frames + _TIME_SLACK).alias(f"time_over{pair}"),
    ).drop(names)


def find_differences(wide: pl.DataFrame, a: int, b: int, stage: str, config: QualityConfig) -> pl.DataFrame:
    """Find differences of two files beyond the limits."""
    pair = f"_{a}{b}"
    here, there = pl.col(f"present_{a}"), pl.col(f"present_{b}")
    limit_x = config.edge_px / pl.col(f"scale_x_{a}")
    axis = pl.col(f"worst_edge{pair}").str.starts_with("x")
    limit = pl.when(axis).then(limit_x).otherwise(config.edge_px / pl.col(f"scale_y_{a}"))
    at = f"{config.resolution[0]}x{config.resolution[1]}"
    moved = pl.format(
        f"{{}} differs by {{}}{{}}, at most {{}} pass ({{}} px against {config.edge_px:g} at {at})",
        f"worst_edge{pair}",
        format_digits(pl.col(f"edge_px{pair}")),
        format_unit(a),
        format_digits(limit),
        format_digits(pl.col(f"edge_ref{pair}")),
    )
    unit = (
        "frames of the file" if config.frame_rate is None else f"frames at {config.frame_rate:g} per second"
    )
    late = pl.format(
        f"start by {{}}, end by {{}} {unit}, at most {config.frames:g} pass",
        *(_format_signed(pl.col(f"{name}_ref{pair}")) for name in ("start", "end")),
    )
    both = here & there
    label_a, label_b = pl.col(f"labels_{a}"), pl.col(f"labels_{b}")
    changed = both & (label_a.list.set_symmetric_difference(label_b).list.len() > 0)
    relabelled = pl.format("{} became {}", _list(label_a), _list(label_b))
    # Which boxes are in one file only because their person starts or ends within the limit of time.
    key = ["video", "name"]
    persons = wide.filter(
        (pl.col("what") == "person")
        & pl.col(f"present_{a}")
        & pl.col(f"present_{b}")
        & ~pl.col(f"time_over_{a}{b}").fill_null(value=True)
    )
    shared = persons.select(
        *key,
        low=pl.max_horizontal(f"start_{a}", f"start_{b}"),
        high=pl.min_horizontal(f"end_{a}", f"end_{b}"),
    ).unique(key, keep="first", maintain_order=True)
    beside = wide.select(*key, "what", "frame").join(shared, on=key, how="left", maintain_order="left")
    outside = (pl.col("frame") < pl.col("low")) | (pl.col("frame") >= pl.col("high"))
    excused = (pl.col("what") == "box") & outside.fill_null(value=False)
    wide = wide.with_columns(beside.select(excused.alias(_EXCUSED)).to_series())
    asked = ~pl.col(_EXCUSED)
    parts = [
        select_findings(wide, here & ~there & asked, stage, "missing", pl.lit("is not there any more")),
        select_findings(wide, there & ~here & asked, stage, "added", pl.lit("was not there before")),
        select_findings(wide, pl.col(f"edge_over{pair}"), stage, "box moved", moved),
        select_findings(wide, pl.col(f"time_over{pair}"), stage, "time moved", late),
        select_findings(wide, changed, stage, "label changed", relabelled),
    ]
    return pl.concat(parts)


def select_findings(wide: pl.DataFrame, wrong: pl.Expr, stage: str, rule: str, says: pl.Expr) -> pl.DataFrame:
    """One row per item for which a condition holds.

    Args:
        wide: the items.
        wrong: the condition; null as false.
        stage: where it was seen.
        rule: the rule that is broken.
        says: the text for each; null where it names a value that is unknown.
    """
    held = wide.filter(wrong.fill_null(value=False))
    table = says.cast(pl.String).fill_null("a value that it is held against is unknown")
    rows = held.select("item", stage=pl.lit(stage), rule=pl.lit(rule), says=table)
    return rows.cast(pl.Schema(FINDING))


def format_digits(value: pl.Expr) -> pl.Expr:
    """The text of a number with at most four significant digits, whole where it is whole."""
    return value.round_sig_figs(4).cast(pl.String).str.strip_suffix(".0")


def format_unit(k: int) -> pl.Expr:
    """The unit of the edges of a video of file k, in words."""
    return pl.when(pl.col(f"width_{k}") == 1).then(pl.lit(" of the image")).otherwise(pl.lit(" px"))


def _edges(k: int) -> list[pl.Expr]:
    return [
        pl.col(f"{edge}_{k}") * pl.col(f"scale_{axis}_{k}") for edge, axis in zip(EDGES, _AXES, strict=True)
    ]


def _list(labels: pl.Expr) -> pl.Expr:
    return pl.when(labels.list.len() > 0).then(labels.list.join(", ")).otherwise(pl.lit("no label"))


def _format_signed(value: pl.Expr) -> pl.Expr:
    shown = format_digits(value.fill_null(0.0) + 0.0)
    return pl.when(value > 0).then(pl.format("+{}", shown)).otherwise(shown)


# Words that no description may hold, found as whole words in any case, singular or plural.

_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Scripts that put no spaces between words, or join endings to them: there a word is found anywhere."""
_MOST = 20_000


class ForbiddenWords:
    """A list of words and phrases to look for.

    Args:
        words: as a person writes them; `lady` also finds `Ladies`, `scar` finds `SCARS` but not `scarf`.

    Raises:
        InputError: if there are none, or too many to be a list made by hand.
    """

    def __init__(self, words: Sequence[str]) -> None:
        plain = {normalize_text(word): word.strip() for word in words}
        plain.pop("", None)
        if not plain or len(plain) > _MOST:
            raise InputError(
                f"expected 1 to {_MOST:,} forbidden words, found {len(plain):,}",
                hint="Write one word or phrase a line; a line that starts with # is a comment.",
            )
        self.words = tuple(plain.values())
        self._named = {form: shown for word, shown in plain.items() for form in _forms(word)}
        self._named |= plain
        # An alternation takes the first that fits: "old" before "old man" would hide the phrase.
        longest_first = sorted(self._named, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(_build_pattern(form) for form in longest_first))

    @classmethod
    def load(cls, path: Path) -> ForbiddenWords:
        """The list in a text file, one word or phrase a line; a line that starts with # is a comment.

        Raises:
            InputError: if it cannot be read, or holds no word.
        """
        try:
            lines = read_regular(path, limit=MOST_BYTES).decode("utf-8-sig").splitlines()
        except OSError as error:
            raise InputError(
                f"the list of words cannot be read: {error.strerror}", where=str(path)
            ) from error
        except UnicodeDecodeError as error:
            hint = "Save the list as UTF-8."
            raise InputError("expected text in UTF-8", where=str(path), hint=hint) from error
        try:
            return cls([line for line in lines if not line.lstrip().startswith("#")])
        except InputError as error:
            raise InputError(error.message, where=str(path), hint=error.hint) from error

    def found_in(self, text: str) -> list[str]:
        """The listed words that stand in a text, in the order of the text, each once.

        >>> ForbiddenWords(["lady", "scar"]).found_in("Two LADIES, one with a scarf")
        ['lady']
        """
        hits = (self._named[match.group()] for match in self._pattern.finditer(normalize_text(text)))
        return list(dict.fromkeys(hits))


def normalize_text(text: str) -> str:
    """The text as words are compared: compatibility forms, case and invisible characters are gone."""
    # Twice, since casefolding may undo the composition of characters.
    composed = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    seen = "".join(character for character in composed if unicodedata.category(character) != "Cf")
    return " ".join(seen.split())


def _forms(word: str) -> tuple[str, ...]:
    """The plurals of a word by the simple rules: s, es, and ies for y."""
    if not word[-1].isalpha():
        return ()
    return (f"{word}s", f"{word}es", *([f"{word[:-1]}ies"] if word.endswith("y") else []))


def _build_pattern(form: str) -> str:
    """The pattern of a whole word; a limit is asked for only beside characters that belong to words."""
    # Words of a list are words, not patterns; a list from outside must not be able to stall the search.
    pattern = re.escape(form)
    if _UNSPACED.search(form):
        return pattern
    before = r"(?<!\w)" if re.match(r"\w", form) else ""
    after = r"(?!\w)" if re.search(r"\w$", form) else ""
    return f"{before}{pattern}{after}"


RULES: dict[str, str] = {
    "missing": "an item of the round before is gone",
    "added": "an item was not there in the round before",
    "box moved": "an edge of a box differs by more than the limit",
    "time moved": "a start or an end differs by more than the limit",
    "label changed": "labels differ between rounds",
    "label unknown": "a label is not in the dictionary",
    "forbidden word": "a description holds a word of the list",
    "empty box": "a box has no width or no height",
    "outside the frame": "a box leaves the image",
    "no duration": "the end is not after the start",
    "unknown person": "a box, relation or sentence belongs to nobody who has boxes",
    "own object": "somebody is the object of his own relation",
    "outside its tracks": "a relation lasts longer than the tracks of both",
    "sound elsewhere": "the box of a sound is not in the frame in which the sound starts",
    "drawn twice": "one person has several boxes in a frame",
    "same reviewer": "a round was checked by somebody of an earlier round",
    "refused": "the reader did not take a row, and says why",
}
"""Every rule and what breaks it."""
_SLACK = 1e-3


def apply_rules(
    wide: pl.DataFrame,
    k: int,
    stage: str,
    config: QualityConfig,
    dictionary: Dictionary,
    words: ForbiddenWords | None,
) -> pl.DataFrame:
    """Findings of all rules in one file.

    Args:
        wide: what `aligned` gave.
        k: the place of the file.
        stage: what the file is called.
        config: the limits.
        dictionary: the allowed labels.
        words: words that no description may hold; None for no list.
    """
    x1, y1, x2, y2 = (pl.col(f"{edge}_{k}") for edge in EDGES)
    width, height = pl.col(f"width_{k}"), pl.col(f"height_{k}")
    unit = format_unit(k)
    sides = pl.format(
        "it is {}{} wide and {}{} high", format_digits(x2 - x1), unit, format_digits(y2 - y1), unit
    )
    over = [-x1, -y1, x2 - width, y2 - height]
    slack = [pl.col(f"slack_px_{k}") / pl.col(f"scale_{axis}_{k}") for axis in ("x", "y")] * 2
    out = pl.any_horizontal(far > near for far, near in zip(over, slack, strict=True))
    says = pl.format(
        "it leaves the {} x {} image by {}{}",
        width.cast(pl.Int64),
        height.cast(pl.Int64),
        format_digits(pl.max_horizontal(over)),
        unit,
    )
    named = (pl.col("what") == "box") & (pl.col("name") != "") & pl.col(f"present_{k}")
    twice = named & (pl.col(f"present_{k}").sum().over("what", "video", "name", "frame") > 1)
    parts = [
        select_findings(wide, (x1 >= x2) | (y1 >= y2), stage, "empty box", sides),
        select_findings(wide, out, stage, "outside the frame", says),
        select_findings(
            wide, twice, stage, "drawn twice", pl.lit("the person has several boxes in this frame")
        ),
        *_time_rules(wide, k, stage, config),
        *_person_rules(wide, k, stage),
        _unknown_labels(wide, k, stage, dictionary),
        _forbidden(wide, k, stage, words),
    ]
    return pl.concat(parts)


def find_same_reviewers(wide: pl.DataFrame, k: int, stage: str, config: QualityConfig) -> pl.DataFrame:
    """Items of file k whose annotator also made an earlier round of them.

    Args:
        wide: what `aligned` gave.
        k: the place of the file.
        stage: what the comparison is called.
        config: whether reviewers must differ at all.
    """
    own = pl.col(f"annotator_{k}")
    again = pl.any_horizontal((own == pl.col(f"annotator_{j}")).fill_null(value=False) for j in range(k))
    says = pl.format("{} had annotated or checked it before", own)
    return select_findings(
        wide, again if config.reviewers_differ else pl.lit(value=False), stage, "same reviewer", says
    )


def _time_rules(wide: pl.DataFrame, k: int, stage: str, config: QualityConfig) -> list[pl.DataFrame]:
    start, end = pl.col(f"start_{k}"), pl.col(f"end_{k}")
    low, high = pl.col(f"low_{k}"), pl.col(f"high_{k}")
    related, heard = pl.col("what") == "relation", pl.col("what") == "sound box"
    shown = [
        value.cast(pl.Int64).cast(pl.String).fill_null("an unknown frame")
        for value in (start, end, low, high)
    ]
    astray = (pl.col("frame") - low).abs() * pl.col(f"scale_t_{k}") > config.frames + _SLACK
    return [
        select_findings(
            wide, end <= start, stage, "no duration", pl.format("it lasts from {} to {}", *shown[:2])
        ),
        select_findings(
            wide,
            related & ((start < low) | (end > high)),
            stage,
            "outside its tracks",
            pl.format("it lasts from {} to {}, both tracks from {} to {}", *shown),
        ),
        select_findings(
            wide,
            heard & pl.col(f"present_{k}") & astray,
            stage,
            "sound elsewhere",
            pl.format("the box is in frame {}, the sound starts at {}", "frame", low.round(1)),
        ),
    ]


def _person_rules(wide: pl.DataFrame, k: int, stage: str) -> list[pl.DataFrame]:
    unknown = ~pl.col(f"known_{k}")
    nobody = pl.lit("it belongs to nobody who has boxes")
    itself = pl.format("{} is subject and object", "name")
    return [
        select_findings(wide, unknown, stage, "unknown person", nobody),
        select_findings(wide, pl.col(f"itself_{k}"), stage, "own object", itself),
    ]


def _unknown_labels(wide: pl.DataFrame, k: int, stage: str, dictionary: Dictionary) -> pl.DataFrame:
    """One finding per item with the labels that no dictionary holds."""
    held = wide.select("item", shown=pl.col(f"labels_{k}")).explode("shown").drop_nulls()
    wrong = [shown for shown in held["shown"].unique().sort() if not _is_allowed(shown, dictionary)]
    rows = held.filter(pl.col("shown").is_in(wrong)).group_by("item", maintain_order=True)
    says = pl.format("not in the dictionary: {}", pl.col("shown").str.join(", "))
    found = rows.agg(says=says).with_columns(stage=pl.lit(stage), rule=pl.lit("label unknown"))
    return found.select(list(FINDING)).cast(pl.Schema(FINDING))


def _is_allowed(shown: str, dictionary: Dictionary) -> bool:
    kind, label = shown.split(": ", 1)
    return kind not in dictionary.kinds or dictionary.standard(kind, label) is not None


def _forbidden(wide: pl.DataFrame, k: int, stage: str, words: ForbiddenWords | None) -> pl.DataFrame:
    """One finding per description that holds a word of the list."""
    if words is None:
        return pl.DataFrame(schema=FINDING)
    held = wide.select("item", text=f"text_{k}").drop_nulls()
    found = {text: words.found_in(text) for text in held["text"].unique(maintain_order=True)}
    rows = [
        (
            item,
            stage,
            "forbidden word",
            f"the description says {', '.join(repr(word) for word in found[text])}",
        )
        for item, text in held.iter_rows()
        if found[text]
    ]
    return pl.DataFrame(rows, schema=FINDING, orient="row")
