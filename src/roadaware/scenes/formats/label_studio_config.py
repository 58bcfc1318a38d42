"""The labelling config of a Label Studio project: its controls and their labels, as XML."""

from __future__ import annotations

import colorsys
import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

import polars as pl

from roadaware.scenes.predictions import Predictions
from roadaware.scenes.tables import Scenes

BOX, DESCRIPTION, SOUND, PREDICATE, EVENT = "box", "description", "sound", "predicate", "event"
_RESERVED = (BOX, DESCRIPTION, SOUND, EVENT)
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Controls:
    """Names of controls.

    Args:
        regions: kind of label to the control of boxes' labels.
        spans: kind of label to the control of spans on the timeline.
    """

    regions: dict[str, str]
    spans: dict[str, str]


def controls_of(tables: Scenes | Predictions) -> Controls:
    """The controls that the tables' labels need: each kind is one, and another where it labels spans too."""
    labels = tables.tube_labels.with_columns(pl.col("kind").cast(pl.String))
    if "spans" in tables.tubes.columns:
        marked = tables.tubes.filter(pl.col("spans").is_not_null()).select("tube")
        drawn = tables.boxes.select(pl.col("tube").cast(pl.Int64)).drop_nulls().unique()
        on_spans = labels.join(marked, on="tube", how="semi").join(drawn, on="tube", how="anti")
    else:
        on_spans = labels.clear()
    rest = labels.join(on_spans, on=["tube", "kind", "label"], how="anti")["kind"]
    boxes = tables.labels["kind"].cast(pl.String)
    regions = sorted({*rest.unique(), *boxes.unique()})
    spans = sorted(on_spans["kind"].unique())
    return Controls(
        {kind: f"{kind}_of_region" if kind in (BOX, DESCRIPTION, SOUND) else kind for kind in regions},
        {
            kind: f"{kind}_over_time" if kind in (*regions, BOX, DESCRIPTION, SOUND) else kind
            for kind in spans
        },
    )


def config_of(tables: Scenes | Predictions, controls: Controls, *, picture: bool) -> str:
    """The config for all that the tables hold.

    Args:
        tables: with vocabularies.
        controls: see `controls_of`.
        picture: whether the tasks are about pictures; about videos otherwise.
    """
    words = tables.meta.vocabularies
    over = "image" if picture else "video"
    lines = [tag("Image" if picture else "Video", name=over, value=f"${over}", **_rate(tables, picture))]
    lines.append(tag("Rectangle" if picture else "VideoRectangle", name=BOX, toName=over))
    for kind, name in controls.regions.items():
        lines += labelled("Labels", name, over, words.get(kind, ()))
    for kind, name in controls.spans.items():
        lines += labelled("TimelineLabels", name, over, words.get(kind, ()))
    if not tables.queries.is_empty():
        lines.append(tag("TextArea", name=DESCRIPTION, toName=over, perRegion="true", editable="true"))
    events = sorted(set(categories_of(tables).values()))
    if events:
        inner = [f"  {tag('Choice', value=word)}" for word in events]
        lines += [_opened("Choices", name=EVENT, toName=over), *inner, "</Choices>"]
    if not tables.sounds.is_empty() and not picture:
        lines.append(tag("Audio", name="audio", value=f"${over}", sync=over))
        lines += labelled("Labels", SOUND, "audio", words.get(SOUND, ()))
    if not tables.relations.is_empty():
        inner = [f"  {tag('Relation', value=word)}" for word in words.get(PREDICATE, ())]
        lines += ["<Relations>", *inner, "</Relations>"]
    return "\n".join(["<View>", *(f"  {line}" for line in lines), "</View>", ""])


def categories_of(tables: Scenes | Predictions) -> dict[str, str]:
    """Video to its category, where true videos have one."""
    if isinstance(tables, Predictions) or "category" not in tables.videos.columns:
        return {}
    rows = tables.videos.select(pl.col("video", "category").cast(pl.String)).drop_nulls()
    return dict(rows.iter_rows())


def _rate(tables: Scenes | Predictions, picture: bool) -> dict[str, str]:
    """The frame rate: that of each task, since videos may differ."""
    known = "fps" in tables.videos.columns and tables.videos["fps"].is_not_null().any()
    return {"frameRate": "$fps"} if known and not picture else {}


def labelled(control: str, name: str, over: str, labels: Sequence[str]) -> list[str]:
    """The lines of a control with its labels, each in a colour of its own.

    Args:
        control: its element, such as Labels.
        name: of the control.
        over: name of what it labels.
        labels: in their order.
    """
    colours = [colorsys.hls_to_rgb(n / max(len(labels), 1), 0.5, 0.7) for n in range(len(labels))]
    shades = ["#" + "".join(f"{round(255 * part):02x}" for part in colour) for colour in colours]
    inner = [
        f"  {tag('Label', value=label, background=shade)}"
        for label, shade in zip(labels, shades, strict=True)
    ]
    return [_opened(control, name=name, toName=over), *inner, f"</{control}>"]


def tag(element: str, **attributes: str) -> str:
    """An element without content.

    Args:
        element: its name.
        attributes: of it, quoted here.
    """
    return f"{_opened(element, **attributes)[:-1]}/>"


def _opened(tag: str, **attributes: str) -> str:
    told = "".join(f" {name}={quoteattr(_NO_XML.sub('', value))}" for name, value in attributes.items())
    return f"<{tag}{told}>"
