"""Checks on samples, whose answers must be annotated and hidden, and on tracks, boxes, videos and splits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from roadaware.analysis.audit.checks import (
    SHOWN,
    Context,
    Example,
    Finding,
    NotApplicableError,
    Severity,
    Table,
    build_finding,
    list_examples,
)
from roadaware.arrays import Bools
from roadaware.protocols.printed_iv2024 import TABLE_I
from roadaware.scenes.factors import extract_windows
from roadaware.scenes.sampling import Iv2024, describe_exclusions, sample
from roadaware.scenes.schema import CORNERS
from roadaware.statistics import classification
from roadaware.statistics.classification import roc_auc


def check_empty_split(context: Context) -> Finding:
    """Splits without videos or without samples."""
    asked, notes = context.asked, context.sampled.meta.notes["sampling"]
    empty = [split for split in asked.splits if split not in context.protocol.splits]
    messages = [
        f"{split} ({describe_exclusions(notes[split]) if split in notes else 'no videos'})" for split in empty
    ]
    lines = [
        (split, *(notes.get(split, {}).get(key, 0) for key in ("pedestrians", "sampled", "samples")))
        for split in asked.splits
    ]
    return Finding(
        name="empty-split",
        severity="serious",
        count=len(empty),
        out_of=len(asked.splits),
        sentence=f"{len(empty)} of {len(asked.splits)} splits of {asked.subset} have no samples: "
        f"{', '.join(messages)}.",
        why="Nothing can be fitted, chosen or tested on a split without samples; the checks on samples below "
        "are made on the other splits.",
        advice="Complete the list of the split and the annotations of the videos that it names.",
        table=Table(("split", "pedestrians", "sampled", "samples"), tuple(lines)),
    )


def label_unknown(context: Context) -> Finding:
    """Pedestrians who should have a label and have none, so that nothing can be asked about them."""
    if context.protocol.task == "intention":
        raise NotApplicableError("intention does not ask whether somebody crosses")
    notes = [context.sampled.meta.notes["sampling"][split] for split in context.protocol.splits]
    count = sum(note["pedestrians_without_label"] for note in notes)
    out_of = sum(note["pedestrians"] for note in notes)
    name = pl.col("name")
    asked = name.str.ends_with("b") if context.protocol.dataset == "jaad" else name.is_not_null()
    return Finding(
        name="label-unknown",
        severity="serious",
        count=count,
        out_of=out_of,
        sentence=f"Of {count} of {out_of} pedestrians nothing says whether they cross, though it should.",
        why="They are left out of the samples: taken for pedestrians who do not cross, they would turn "
        "crossings into the opposite. Numbers on what is left are not those of the whole split.",
        advice="Read the dataset with all files of its annotations_attributes, undamaged.",
        examples=list_examples(context.pedestrians.filter(asked & pl.col("crossing").is_null())),
    )


def check_missing_event(context: Context) -> Finding:
    """Crossing samples of pedestrians whose start of crossing nobody annotated."""
    rows = context.samples.filter(pl.col("crosser"))
    return _of_last_split(
        context,
        rows,
        pl.col("event_source") != "annotated",
        f"crossing {context.protocol.splits[-1]} samples come from pedestrians "
        "without an annotated event; the protocol puts one at the third-last box of the track.",
        name="crossing-without-event",
        severity="serious",
        why="Most of these pedestrians are crossing already when first seen, so the model is asked to "
        "detect, not to predict, and the time to event counts down to the end of the track.",
        advice="Leave them out: the protocol's default() does, reference() keeps them for parity.",
        at="event_frame",
    )


def check_observed_crossing(context: Context) -> Finding:
    """Crossing samples that show the crossing inside the observation."""
    samples = context.samples.with_columns(pl.Series("seen", context.observed_crossing))
    rows = samples.filter(pl.col("crosser"))
    last = context.protocol.splits[-1]
    others = samples.filter(~pl.col("crosser") & pl.col("seen") & (pl.col("split") == last))
    return _of_last_split(
        context,
        rows,
        pl.col("seen"),
        f"crossing {last} samples show the crossing inside the observation.",
        name="crossing-observed",
        severity="serious",
        why="The answer is in sight: a model that recognises crossing scores as one that predicts it.",
        advice="Leave these samples out: the protocol's default() does.",
        measures={"not_crossing_samples_tagged_as_crossing": len(others)},
    )


def check_region_off_screen(context: Context) -> Finding:
    """Risk samples whose region changes when boxes left of the image go to the first region."""
    protocol = context.protocol
    if not isinstance(protocol, Iv2024) or protocol.task != "risk":
        raise NotApplicableError("only risk asks for a region")
    repaired = sample(context.scenes, replace(protocol, risk_off_left="first_region")).samples
    rows = context.samples.with_columns(repaired["label"].alias("repaired"))
    return _of_last_split(
        context,
        rows,
        pl.col("label") != pl.col("repaired"),
        f"{protocol.splits[-1]} samples end left of the image and carry the "
        "label of the last region, on the right.",
        name="region-off-screen",
        severity="warning",
        why="No interval of the published code holds a negative centre; its search ends at the last region.",
        advice="Use default(), which gives them the first region.",
    )


def check_critical_point(context: Context) -> Finding:
    """Intention samples that show more than the people saw whose answers are the label."""
    protocol = context.protocol
    if not isinstance(protocol, Iv2024) or protocol.task != "intention":
        raise NotApplicableError("only intention has a critical point")
    kept = sample(context.scenes, replace(protocol, intention_past_critical="drop")).samples
    keys = ["tube", "start_frame", "end_frame"]
    inside = context.samples.join(kept.select(keys), on=keys, how="semi")
    return _of_last_split(
        context,
        context.samples,
        ~pl.col("sample").is_in(inside["sample"].implode()),
        f"{protocol.splits[-1]} samples observe frames behind the critical "
        "point, up to which the annotators watched.",
        name="past-critical-point",
        severity="warning",
        why="The model sees more than the people whose answers it is asked to give.",
        advice="Leave these samples out: the protocol's default() does.",
    )


def check_class_balance(context: Context) -> Finding:
    """How the answers are spread; always a note."""
    task, last = context.protocol.task, context.protocol.splits[-1]
    labels = context.sampled.meta.vocabularies[task]
    counts = {
        split: [held.filter(pl.col("label") == label).height for label in range(len(labels))]
        for split in context.protocol.splits
        for held in [context.samples.filter(pl.col("split") == split)]
    }
    test = counts[last]
    common, total = max(range(len(labels)), key=lambda label: test[label]), max(sum(test), 1)
    share = test[common] / total
    return Finding(
        name="class-balance",
        severity="note",
        count=test[common],
        out_of=sum(test),
        sentence=f"{test[common]} of {sum(test)} {last} samples ({share:.1%}) are {labels[common]}.",
        why=f"Always answering {labels[common]} gives an accuracy of {share:.3f} and a balanced accuracy of "
        f"{1 / len(labels):.3f}.",
        advice="Read balanced accuracy and ranking metrics beside the accuracy.",
        table=Table(
            ("label", *counts),
            tuple((name, *(held[label] for held in counts.values())) for label, name in enumerate(labels)),
        ),
        measures={"accuracy_of_the_most_frequent_label": share},
    )


def _of_last_split(
    context: Context,
    rows: pl.DataFrame,
    wrong: pl.Expr,
    says: str,
    *,
    name: str,
    severity: Severity,
    why: str,
    advice: str,
    at: str = "start_frame",
    measures: dict[str, float | int | None] | None = None,
) -> Finding:
    """A finding on samples: counted in the last split, which is the one that is judged, and described for all.

    Args:
        rows: the samples that could be wrong.
        wrong: which of them are.
        says: what is wrong with them; the sentence is `<count> of <out_of> <says>`.
        name, severity, why, advice, measures: see `Finding`.
        at: column of the frame at which examples are considered, one of each pedestrian.
    """
    # Samples and pedestrians that are wrong in each split, and the last split's samples.
    lines = []
    for split in context.protocol.splits:
        held = rows.filter(pl.col("split") == split)
        bad = held.filter(wrong)
        lines.append((split, len(bad), len(held), bad["tube"].n_unique(), held["tube"].n_unique()))
    columns = ("split", "samples", "of_samples", "pedestrians", "of_pedestrians")
    table, count, out_of = Table(columns, tuple(lines)), int(lines[-1][1]), int(lines[-1][2])
    hit = rows.filter(wrong & (pl.col("split") == context.protocol.splits[-1]))
    return Finding(
        name=name,
        severity=severity,
        count=count,
        out_of=out_of,
        sentence=f"{count} of {out_of} {says}",
        why=why,
        advice=advice,
        table=table,
        measures=measures or {},
        examples=list_examples(hit.unique("tube", maintain_order=True), at),
    )


# Checks for what gives the answer away: facts that were only recorded because the answer was known.

_TELLING_AUC = 0.65
_TAGS = ("action", "look", "cross")
_ATTRIBUTES = ("age", "gender", "group_size", "num_lanes", "intersection")


def check_identifier_leak(context: Context) -> Finding:
    """The last letter of the pedestrian's identifier as a predictor."""
    samples = _select_crossing_samples(context)
    letters = samples["name"].str.extract(r"([A-Za-z])$")
    flags = {
        letter: (letters == letter).fill_null(False).to_numpy() for letter in sorted(set(letters) - {None})
    }
    if not flags:
        flags = {"": np.zeros(len(samples), bool)}
    letter = max(flags, key=lambda key: _auc(samples, flags[key]) or 0.0)
    return _leak(
        samples,
        flags[letter],
        name="identifier-leak",
        what=f"the identifier ends with '{letter}'",
        why="The letter marks pedestrians whose behaviour was annotated, and all who cross are among "
        "them: whoever reads the name, or anything recorded for them alone, reads the answer.",
        advice="Never feed identifiers, or what depends on them, to a model.",
    )


def check_behaviour_leak(context: Context) -> Finding:
    """Whether a box carries behaviour tags as a predictor."""
    tags = [tag for tag in _TAGS if tag in context.scenes.boxes.columns]
    if not tags:
        raise NotApplicableError("boxes have no behaviour tags")
    samples = _select_crossing_samples(context)
    has = pl.any_horizontal(pl.col(tag).is_not_null() for tag in tags).cast(pl.Float64)
    plain = context.scenes.with_tables(boxes=context.scenes.boxes.with_columns(has.alias("has_tags")))
    flag = extract_windows(plain, samples, ("has_tags",))[:, -1, 0] == 1
    return _leak(
        samples,
        flag,
        name="behaviour-tag-leak",
        what=f"the last observed box carries behaviour tags ({', '.join(tags)})",
        why="Tags exist for some pedestrians only, and all who cross are among them; a placeholder "
        "for the others tells the model who they are.",
        advice="Do not feed behaviour tags to a model when all pedestrians are sampled; or sample only those "
        "who have tags.",
    )


def check_attribute_leak(context: Context) -> Finding:
    """Whether attributes of the pedestrian are known as a predictor."""
    known = [column for column in _ATTRIBUTES if column in context.scenes.tubes.columns]
    if not known:
        raise NotApplicableError("tubes have no attributes")
    samples = _select_crossing_samples(context)
    has = pl.any_horizontal(pl.col(column).is_not_null() for column in known)
    facts = context.scenes.tubes.select("tube", has.alias("has"))
    flag = samples.join(facts, on="tube", how="left", maintain_order="left")["has"].to_numpy()
    return _leak(
        samples,
        flag,
        name="attribute-leak",
        what=f"attributes ({', '.join(known)}) are known",
        why="Attributes were recorded for some pedestrians only, and all who cross are among them.",
        advice="Do not feed attributes to a model when all pedestrians are sampled.",
    )


def _select_crossing_samples(context: Context) -> pl.DataFrame:
    """The samples of the last split, if they ask whether somebody crosses and some do and some do not."""
    if context.protocol.task != "action":
        raise NotApplicableError(f"{context.protocol.task} does not ask whether somebody crosses")
    samples = context.samples.filter(pl.col("split") == context.protocol.splits[-1])
    if samples["label"].n_unique() < 2:
        raise NotApplicableError(f"all {context.protocol.splits[-1]} samples have the same answer")
    return samples


def _auc(samples: pl.DataFrame, flag: Bools) -> float | None:
    return roc_auc(samples["label"].to_numpy() == 1, flag.astype(np.float64))


def _leak(samples: pl.DataFrame, flag: Bools, *, name: str, what: str, why: str, advice: str) -> Finding:
    """A finding if the flag alone separates crossing from not crossing, else one that counts nothing."""
    truth = samples["label"].to_numpy()
    area = _auc(samples, flag)
    f1 = float(
        np.max(classification.f1(classification.confusion_matrix(truth, flag.astype(np.int64), 2), "binary"))
    )
    crossing, others = int((flag & (truth == 1)).sum()), int((flag & (truth != 1)).sum())
    telling = area is not None and area >= _TELLING_AUC
    severity: Severity = "serious"
    split = samples["split"][0]
    return Finding(
        name=name,
        severity=severity,
        count=crossing if telling else 0,
        out_of=int((truth == 1).sum()),
        sentence=f"That {what} holds for {crossing} of {(truth == 1).sum()} crossing {split} samples and for "
        f"{others} of {(truth != 1).sum()} others: alone it reaches an AUC of {area or 0:.3f} and an F1 of "
        f"{f1:.3f}.",
        why=why,
        advice=advice,
        measures={"auc": area, "f1": f1, "not_crossing_samples": others},
        examples=list_examples(samples.filter(pl.Series(flag)).unique("tube", maintain_order=True))
        if telling
        else (),
    )


# The sample counts that papers print, and whether the samples agree.

_VIDEOS = {"jaad": 346, "pie": 53}


def sample_counts(context: Context) -> Finding:
    """The published extraction's counts against print."""
    protocol = context.protocol
    key = (protocol.dataset, protocol.task)
    if key not in TABLE_I or protocol != Iv2024.reference(protocol.task, protocol.dataset):
        raise NotApplicableError("no paper prints counts for this protocol")
    if len(context.scenes.videos) != _VIDEOS[protocol.dataset]:
        raise NotApplicableError(
            f"{protocol.dataset} has {_VIDEOS[protocol.dataset]} videos, not {len(context.scenes.videos)}"
        )
    labels = context.sampled.meta.vocabularies[protocol.task]
    rows = []
    for where, printed in TABLE_I[key].items():
        for label, name in enumerate(labels):
            rows.append((f"{where}, {name}", printed[label], _count_samples(context, where, label)))
    differing = [row for row in rows if row[1] != row[2]]
    assumption = context.sampled.meta.notes.get("assumption")
    text = "; ".join(f"{name}: printed {printed}, obtained {found}" for name, printed, found in differing)
    return Finding(
        name="sample-counts",
        severity="note",
        count=len(differing),
        out_of=len(rows),
        sentence=f"{len(differing)} of {len(rows)} counts of Table I (IV 2024) differ from ours: {text}.",
        why="Counts that differ mean that other samples were scored, or that the table slipped. This table "
        "also prints the name JAAD beside the numbers of PIE."
        + (f" Here it is assumed that {assumption}." if assumption else ""),
        advice="Where all counts of samples agree, trust the samples, not the counts of pedestrians.",
        table=Table(("count", "printed", "obtained"), tuple(rows)),
    )


def _count_samples(context: Context, where: str, label: int) -> int:
    rows = context.samples.filter(pl.col("label") == label)
    return rows["tube"].n_unique() if where == "pedestrians" else len(rows.filter(pl.col("split") == where))


_DOMINANT = 0.4


def track_gaps(context: Context) -> Finding:
    """Tracks with frames missing between their first and last box."""
    context.needs("boxes", "tube")
    spans = context.scenes.boxes.group_by("tube").agg(
        pl.len().alias("boxes"), (pl.col("frame").max() - pl.col("frame").min() + 1).alias("span")
    )
    rows = context.scenes.tubes.join(spans, on="tube", how="inner", maintain_order="left")
    gaps = rows.filter(pl.col("boxes") < pl.col("span"))
    sampled = context.samples.join(gaps, on="tube", how="semi")
    missing = pl.format("{} of {} frames without a box", pl.col("span") - pl.col("boxes"), "span")
    return build_finding(
        gaps,
        rows,
        "tracks have gaps.",
        name="track-gaps",
        severity="warning",
        why="Published samplers count boxes, not frames: across a gap observation and time to event are "
        "longer than they say.",
        advice="Leave these tracks out where timing matters; the samples from them are few.",
        at="start_frame",
        note=missing,
        measures={"samples_of_these_tracks": len(sampled)},
    )


def check_boxes_outside(context: Context) -> Finding:
    """Boxes that reach out of the image."""
    context.needs("boxes")
    sizes = context.scenes.videos.select(pl.col("video").cast(pl.String), "width_px", "height_px")
    rows = context.scenes.boxes.with_columns(pl.col("video").cast(pl.String)).join(
        sizes, on="video", how="left", maintain_order="left"
    )
    out = rows.filter(
        (pl.col("x1_px") < 0)
        | (pl.col("y1_px") < 0)
        | (pl.col("x2_px") > pl.col("width_px"))
        | (pl.col("y2_px") > pl.col("height_px"))
    )
    return _boxes(
        context,
        out,
        "boxes-outside-image",
        "note",
        "reach out of the image",
        "Clip them before cutting patches.",
    )


def check_empty_boxes(context: Context) -> Finding:
    """Boxes without width or height."""
    context.needs("boxes")
    flat = (pl.col("x1_px") >= pl.col("x2_px")) | (pl.col("y1_px") >= pl.col("y2_px"))
    return _boxes(
        context,
        context.scenes.boxes.filter(flat),
        "boxes-without-area",
        "warning",
        "have no area",
        "Leave them out: aspect and scale are undefined.",
    )


def check_repeated_names(context: Context) -> Finding:
    """Tracks that share video and identifier with another."""
    tubes = context.scenes.tubes
    # What is cut out of a track by its labels has the track's name.
    tubes = tubes.filter(pl.col("parent").is_null()) if "parent" in tubes.columns else tubes
    named = tubes.with_columns(pl.col("video", "name").cast(pl.String)).drop_nulls("name")
    twice = named.filter(pl.struct("video", "name").is_duplicated())
    return build_finding(
        twice,
        named,
        "tracks share their identifier with another of their video.",
        name="repeated-names",
        severity="warning",
        why="Metrics by pedestrian merge what belongs to two people, or attributes go to the wrong one.",
        advice="Rename one of them at the source.",
        at="start_frame",
    )


def check_vehicle_action(context: Context) -> Finding:
    """An action of the vehicle that most frames share."""
    context.needs("frames", "vehicle_action")
    counts = (
        context.scenes.frames.drop_nulls("vehicle_action")
        .group_by(pl.col("vehicle_action").cast(pl.String))
        .len()
        .sort(["len", "vehicle_action"], descending=[True, False])
    )
    total, (name, most) = int(counts["len"].sum()), counts.row(0) if len(counts) else ("none", 0)
    return Finding(
        name="vehicle-action",
        severity="note",
        count=most if most > _DOMINANT * total else 0,
        out_of=total,
        sentence=f"{most} of {total} frames ({most / max(total, 1):.1%}) say that the vehicle is {name}.",
        why="The action of the vehicle is coarse and lopsided; it is no measured acceleration, though often "
        "the only ego signal there is.",
        advice="Do not read it as speed; compare models with and without it.",
        table=Table(("vehicle_action", "frames"), tuple(counts.rows())),
    )


def check_split_overlap(context: Context) -> Finding:
    """Videos that more than one split of the protocol's subset names."""
    rows = _splits(context)
    twice = rows.filter(pl.col("held").list.len() > 1)
    return build_finding(
        twice,
        rows,
        f"videos are in several splits of {context.protocol.subset}.",
        name="videos-in-two-splits",
        severity="serious",
        why="What a model was fitted or chosen on is then tested again.",
        advice="Give each video one split.",
        note=pl.col("held").list.join(", "),
    )


def check_unassigned_videos(context: Context) -> Finding:
    """Videos that no split of the protocol's subset names."""
    rows = _splits(context)
    none = rows.filter(pl.col("held").list.len() == 0)
    return build_finding(
        none,
        rows,
        f"videos are in no split of {context.protocol.subset}.",
        name="videos-in-no-split",
        severity="note",
        why="They count in statistics of the dataset and not in any result.",
        advice="Say which subset a count is of.",
    )


def check_rejected(context: Context) -> Finding:
    """Rows that the reader rejected."""
    rows = context.scenes.rejected
    read = sum(context.scenes.meta.rows_read.values())
    reasons = rows.group_by("reason").len().sort(["len", "reason"], descending=[True, False])
    shown = rows.head(SHOWN).with_columns(
        (pl.col(c) if c in rows.columns else pl.lit(None)).alias(c) for c in ("line", "item")
    )
    return Finding(
        name="rejected",
        severity="warning",
        count=len(rows),
        out_of=max(read, len(rows)),
        sentence=f"{len(rows)} of {max(read, len(rows))} rows or files could not be read and were left out.",
        why="What was left out is in no number below.",
        advice="Repair them at the source; --strict turns them into an error.",
        table=Table(("reason", "rows"), tuple(reasons.head(20).rows())),
        examples=tuple(
            Example(row["file"], row["item"], row["line"], row["reason"])
            for row in shown.iter_rows(named=True)
        ),
    )


def _splits(context: Context) -> pl.DataFrame:
    """One row per video with the splits of the protocol's subset that hold it."""
    context.needs("videos", "splits")
    wanted = [f"{context.protocol.subset}/{split}" for split in context.protocol.splits]
    held = pl.col("splits").fill_null([]).list.set_intersection(wanted).list.sort()
    return context.scenes.videos.select(pl.col("video").cast(pl.String), held.alias("held"))


def _boxes(
    context: Context, rows: pl.DataFrame, name: str, severity: Severity, what: str, advice: str
) -> Finding:
    total = len(context.scenes.boxes)
    names = context.scenes.tubes.select("tube", pl.col("name").cast(pl.String))
    shown = rows.head(SHOWN).join(names, on="tube", how="left", maintain_order="left")
    where = pl.format("{}, {}, {}, {}", *CORNERS)
    return Finding(
        name=name,
        severity=severity,
        count=len(rows),
        out_of=total,
        sentence=f"{len(rows)} of {total} boxes {what}.",
        why="Features and patches made from them are off.",
        advice=advice,
        examples=list_examples(shown, "frame", where),
    )


# Checks on what is annotated of crossings: attribute, tags and event against each other.

_NEAR_FRAMES = 15


def check_tags_against_attribute(context: Context) -> Finding:
    """Pedestrians whose attribute denies the crossing that their boxes show."""
    rows = context.crossing.filter(pl.col("is_tagged"))
    denied = rows.filter((_crossing() != "crossing") & pl.col("first_tag").is_not_null())
    table = denied.group_by(_crossing().alias("attribute")).len().sort("attribute")
    return build_finding(
        denied,
        rows,
        "pedestrians with tags are tagged as crossing while their attribute says not-crossing or irrelevant.",
        name="tags-against-attribute",
        severity="warning",
        why="The label of the samples is the attribute: these crossings count as none. Counting tags "
        "and counting attributes gives different numbers of crossing pedestrians.",
        advice="Say which of the two a number counts; look at the examples before trusting either.",
        at="first_tag",
        table=Table(("attribute", "pedestrians"), tuple(table.rows())),
        measures=_crossing_of_subset(context),
    )


def check_attribute_against_tags(context: Context) -> Finding:
    """Pedestrians whose attribute states a crossing that no box shows."""
    rows = context.crossing.filter(pl.col("is_tagged") & (_crossing() == "crossing"))
    unseen = rows.filter(pl.col("first_tag").is_null())
    return build_finding(
        unseen,
        rows,
        "crossing pedestrians are tagged as crossing nowhere.",
        name="attribute-against-tags",
        severity="warning",
        why="Either they cross after their track ends or one of the two annotations is wrong.",
        advice="Look at the examples.",
        at="start_frame",
    )


def check_event_distance(context: Context) -> Finding:
    """Crossing pedestrians whose event is far from the first frame tagged as crossing."""
    rows = _select_annotated(context.crossing).filter(
        (_crossing() == "crossing") & pl.col("first_tag").is_not_null()
    )
    off = pl.col("event_frame") - pl.col("first_tag")
    far = rows.filter(off.abs() > _NEAR_FRAMES)
    late = far.filter(off > 0)
    return Finding(
        name="event-far-from-tags",
        severity="warning",
        count=len(far),
        out_of=len(rows),
        sentence=f"For {len(far)} of {len(rows)} crossing pedestrians event and first frame tagged as "
        f"crossing are more than {_NEAR_FRAMES} frames apart; for {len(late)} the event comes after.",
        why="An event after the first crossing frame lets observations show the crossing; one long before "
        "shifts the time to event.",
        advice="default() drops the samples that show the crossing; check the rest by eye.",
        measures={"event_after_tag": len(late), "event_before_tag": len(far) - len(late)},
        examples=list_examples(far, "event_frame", pl.format("first tagged as crossing at {}", "first_tag")),
    )


def check_event_outside_track(context: Context) -> Finding:
    """Annotated events at a frame where the pedestrian has no box."""
    context.needs("boxes")
    rows = _select_annotated(context.pedestrians)
    held = context.scenes.boxes.select("tube", pl.col("frame").alias("event_frame"))
    lost = rows.join(held, on=["tube", "event_frame"], how="anti", maintain_order="left")
    return build_finding(
        lost,
        rows,
        "annotated events lie where the pedestrian has no box.",
        name="event-outside-track",
        severity="warning",
        why="The time to event cannot be counted in boxes of the track.",
        advice="Correct the event or the track; until then these pedestrians cannot be sampled as published.",
        at="event_frame",
    )


def check_crosser_event(context: Context) -> Finding:
    """Crossing pedestrians without an annotated event."""
    rows = context.pedestrians.filter(_crossing() == "crossing")
    lost = rows.filter(pl.col("event_source").cast(pl.String) != "annotated")
    return build_finding(
        lost,
        rows,
        "crossing pedestrians have no annotated start of crossing.",
        name="crosser-without-event",
        severity="warning",
        why="Without it nothing says what is before the crossing and what is during it.",
        advice="Do not sample them for prediction; `event_source` marks them.",
        at="start_frame",
    )


def check_event_without_crossing(context: Context) -> Finding:
    """Pedestrians with an event who do not cross."""
    if context.protocol.dataset != "jaad":
        raise NotApplicableError("this dataset gives every pedestrian an event by design")
    rows = context.pedestrians.filter(_crossing().is_not_null() & (_crossing() != "crossing"))
    has = _select_annotated(rows)
    at_start = has.filter(pl.col("event_frame") == pl.col("start_frame"))
    return build_finding(
        has,
        rows,
        "pedestrians who do not cross have an annotated crossing point, "
        f"{len(at_start)} of them at their first box.",
        name="event-without-crossing",
        severity="note",
        why="For them it marks something else (a last decision, the last frame in sight), and samplers "
        "that only look whether it is set cut the track there; one cut at its first box gives no sample.",
        advice="Read the point together with the attribute.",
        at="event_frame",
        measures={"at_first_box": len(at_start)},
    )


def _crossing() -> pl.Expr:
    return pl.col("crossing").cast(pl.String)


def _select_annotated(tubes: pl.DataFrame) -> pl.DataFrame:
    """Pedestrians whose event somebody annotated."""
    return tubes.filter(pl.col("event_source").cast(pl.String) == "annotated")


def _crossing_of_subset(context: Context) -> dict[str, float | int | None]:
    """Crossing pedestrians of the protocol's subset, counted by attribute and by tags."""
    context.needs("videos", "splits")
    prefix = f"{context.protocol.subset}/"
    inside = pl.col("splits").list.eval(pl.element().str.starts_with(prefix)).list.any().fill_null(False)
    held = context.scenes.videos.filter(inside)["video"].cast(pl.String)
    rows = context.crossing.filter(pl.col("video").is_in(held.implode()))
    return {
        "subset_crossing_by_attribute": len(rows.filter(_crossing() == "crossing")),
        "subset_crossing_by_tags": len(rows.filter(pl.col("first_tag").is_not_null())),
        "subset_pedestrians": len(rows),
    }
