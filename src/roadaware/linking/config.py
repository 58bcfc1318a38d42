"""LinkerConfig: how detections become paths and labelled tubes, each published quirk a named field; and which is used:
as asked for, else as the detector advises, else by its name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args, get_type_hints

from roadaware.config import ConfigName, check_flags, check_words, from_dict, to_dict
from roadaware.errors import DamagedError, UsageError
from roadaware.scenes.advice import Advice

Dataset = Literal["road", "ucf24"]
Cost = Literal["score", "iou", "scoreiou", "ioul2", "affinity"]
Trim = Literal["none", "indiv", "dpscores", "dpscorestopn"]
ClassScore = Literal["quarter_of_classes", "quarter_of_length", "mean"]

FRAME_S = 0.1
"""What a frame counts in seconds where times are not given."""

# One switching cost per UCF24 class, in the order of its vocabulary, as in the released trimming code.
UCF24_ALPHAS = (1, 1, 16, 3, 1, 8, 16, 16, 10, 10, 3, 16, 16, 10, 1, 8, 16, 16, 16, 2, 1, 8, 2, 16)


@dataclass(frozen=True)
class LinkerConfig:
    """How detections are linked, filled, labelled and trimmed; the defaults are what `default` gives.

    Choosing detections:
        top_rows: only the first rows of a frame are considered (files hold them by falling agentness); None
            for all.
        min_score: of those, the ones with more agentness than this are used.
        age_empty_frames: a frame without such rows lets paths grow stale and close; otherwise it is passed
            over, and they close with the next frame that has some.

    Linking:
        begin_score: a path begins with a detection of more agentness than this; weaker ones continue paths.
        begin_iou: a detection that overlaps one on a path by more than this begins none: the agent was found
            twice.
        min_iou: overlap of a detection with the place where a path is expected.
        jump_gap: frames after its last detection during which a path can be continued.
        jump_gap_s: seconds after it during which a path can be continued, where they are more; without times
            a frame counts as `FRAME_S`.
        cost: what decides between candidates: their agentness (`score`), the overlap (`iou`), the mean of
            both (`scoreiou`), that mean plus 1 / L2 distance of the scores (`ioul2`), or the overlap less
            what speaks against it (`affinity`): class scores and embeddings unlike those of the path, and
            frames missed by a path of few detections. It is at least `min_iou` too.
        edge_rule: a path is continued if its best candidate exceeds `min_edge` (`best`), or if the sum over
            its candidates does (`sum`).
        min_edge: see `edge_rule`.
        assignment: paths choose in their order (`greedy`), or all at once for the greatest sum
            (`hungarian`), and those that found nothing once more (`cascade`): by the affinity of boxes that
            are widened by the uncertainty of their motion.
        clamped_iou: boxes apart have no overlap; unclamped, two boxes that are apart in both directions
            have the product of the two gaps as their intersection.
        motion: a path is expected where a Kalman filter of centre, width and height takes it, whose noise
            goes with the size of the box and with seconds (`kalman`), where its velocity per frame, or per
            second where times are given, takes it over the whole gap (`time`), one step further by the mean
            step of its last detections whatever the gap (`count`), or where it was (`none`).
        order_key: who chooses first: the highest mean agentness over all detections (`mean`, as in the
            paper), or over the `jump_gap` + 1 best ones (`top`, as released): a mean lets a path that has
            just begun take the detections of one that has long held.
        order_ties: among equals the one that came first in the previous order (`first`), the last one
            (`reversed`, a stable ascending sort read backwards), or as this build of numpy sorts
            (`build`, numpy's default sort read backwards, which depends on version and processor).
        sort_new_paths: new paths take their place by the same order; otherwise they stand last for one
            frame.
        single_precision: arithmetic in 32 bits, as detections are stored.

    Closing:
        gaps: missed frames are interpolated (`interpolate`), stay holes (`keep`), or are squeezed out, so
            that the boxes are assigned to consecutive frames from the first (`squeeze`).
        drop_weak: paths of fewer than `min_path_len` detections with a mean agentness of at most
            `min_path_score` are dropped, and so are paths with gaps of at most `min_path_len` detections.
        min_path_len: see `drop_weak`.
        min_path_score: see `drop_weak`.

    Labelling:
        max_labels: labels a path is given per kind, those with the highest class scores.
        min_tube_len: paths of at most so many frames get no label.
        min_label_score: labels whose score for a tube is not higher are not given, since a score of 0 predicts
            nothing; None gives them, down to 0.
        class_score: a path's score of a class is the mean over its frames (`mean`), over the best quarter
            of them (`quarter_of_length`), or over as many of the best as a quarter of the number of
            classes (`quarter_of_classes`).
        trim: a tube is the whole path (`none`), or segments of it found by dynamic programming: for each
            label on its own (`indiv`), or all classes against each other (`dpscores`, and
            `dpscorestopn`, of which the first two segments are taken).
        trim_by: `indiv` asks where the agentness is high (`agentness`), the class score (`class`), or the
            agentness if there are 24 classes and else the class score (`agentness_if_24`).
        trim_alpha: cost of a change of label.
        trim_alphas: cost per class for `indiv`, used where `trim_alpha` is 0 and there are as many classes.
        viterbi_lag: labels follow the scores one frame late, and the last frame's scores are not used.
        tube_nms: of tubes with the same label in a video, those that overlap a better one by more than
            this are dropped; None for no suppression.
        tube_nms_pixel_offset: what is added to the width and height of boxes in that overlap.
    """

    top_rows: int | None = None
    # GEN_CONF_THRESH of the published code.
    min_score: float = 0.025
    age_empty_frames: bool = True
    begin_score: float = 0.1
    begin_iou: float = 0.6
    min_iou: float = 0.2
    jump_gap: int = 4
    # With 0.4 s HOTA falls from 76.5 to 59.0 where boxes are missed for 2 to 7 frames (docs/linking.md).
    jump_gap_s: float = 1.5
    cost: Cost = "affinity"
    edge_rule: Literal["best", "sum"] = "best"
    min_edge: float = 0.1
    assignment: Literal["greedy", "hungarian", "cascade"] = "cascade"
    clamped_iou: bool = True
    motion: Literal["kalman", "time", "count", "none"] = "kalman"
    order_key: Literal["mean", "top"] = "top"
    order_ties: Literal["first", "reversed", "build"] = "first"
    sort_new_paths: bool = True
    single_precision: bool = False
    gaps: Literal["interpolate", "keep", "squeeze"] = "interpolate"
    drop_weak: bool = True
    # Short paths that are kept cost 3.6 to 3.9 HOTA (docs/linking.md, what each part brings).
    min_path_len: int = 3
    min_path_score: float = 1.0
    # TUBES_TOPK of the published code; the paper says 4.
    max_labels: int = 10
    min_tube_len: int = 5
    min_label_score: float | None = 0.0
    class_score: ClassScore = "mean"
    trim: Trim = "none"
    trim_by: Literal["agentness", "class", "agentness_if_24"] = "agentness"
    trim_alpha: float = 0.0
    trim_alphas: tuple[float, ...] = UCF24_ALPHAS
    viterbi_lag: bool = False
    tube_nms: float | None = None
    tube_nms_pixel_offset: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what has no meaning.

        Raises:
            UsageError: if a choice is unknown or a number is out of range.
        """
        hints = get_type_hints(type(self))
        check_words(self)
        check_flags(self)
        for name, low, high in _NUMBERS:
            value = getattr(self, name)
            if value is None and name in ("tube_nms", "top_rows", "min_label_score"):
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
                raise UsageError(f"{name} should be a number from {low:g} to {high:g}; got {value!r}")
            if hints[name] in (int, int | None) and not isinstance(value, int):
                raise UsageError(f"{name} should be a whole number; got {value!r}")
        if not all(isinstance(a, int | float) and 0 <= a < math.inf for a in self.trim_alphas):
            raise UsageError(f"trim_alphas should be finite and not negative; got {self.trim_alphas}")

    @classmethod
    def reference(cls, dataset: Dataset = "road") -> LinkerConfig:
        """The published builder, box for box, with the parameters that its authors give for the dataset.

        Ties between paths follow a stable sort read backwards: the published code leaves them to numpy's
        default sort, which differs between builds; `order_ties="build"` does the same.

        Raises:
            UsageError: if the dataset is neither road nor ucf24.

        Source: Singh et al., TPAMI 2022, sections 4.2 and 5.2, and the released code of 3D-RetinaNet.
        """
        _validate_dataset(dataset)
        return cls(
            top_rows=10 if dataset == "road" else 20,
            age_empty_frames=False,
            begin_score=0.0,
            begin_iou=1.0,
            min_iou=0.5 if dataset == "road" else 0.25,
            jump_gap_s=0.0,
            cost="score",
            edge_rule="sum",
            assignment="greedy",
            clamped_iou=False,
            motion="count",
            order_ties="reversed",
            sort_new_paths=False,
            single_precision=True,
            gaps="squeeze",
            drop_weak=False,
            min_path_len=6,
            min_path_score=0.1,
            min_label_score=None,
            class_score="quarter_of_classes",
            trim="none" if dataset == "road" else "indiv",
            trim_by="agentness_if_24",
            viterbi_lag=True,
            tube_nms_pixel_offset=1.0,
        )

    @classmethod
    def default(cls, dataset: Dataset = "road") -> LinkerConfig:
        """The choices we recommend: the same method with the errors of the published builder corrected.

        Raises:
            UsageError: if the dataset is neither road nor ucf24.
        """
        _validate_dataset(dataset)
        return cls() if dataset == "road" else cls(trim="indiv")


_NUMBERS: tuple[tuple[str, float, float], ...] = (
    ("top_rows", 1, math.inf),
    ("min_score", 0, 1),
    ("begin_score", 0, 1),
    ("begin_iou", 0, 1),
    ("min_iou", 0, 1),
    ("jump_gap", 0, 10_000),
    ("jump_gap_s", 0, 10_000),
    ("min_edge", 0, 1e6),
    ("min_path_len", 0, 1_000_000_000),
    ("min_path_score", 0, 1),
    ("max_labels", 1, 1_000_000),
    ("min_tube_len", 0, 1_000_000_000),
    ("min_label_score", 0, 1),
    ("trim_alpha", 0, 1e9),
    ("tube_nms", 0, 1),
    ("tube_nms_pixel_offset", 0, 1),
)


def _validate_dataset(dataset: str) -> None:
    if dataset not in get_args(Dataset):
        raise UsageError(f"there are linker parameters for {', '.join(get_args(Dataset))}; got '{dataset}'")


# A linker's config with what a detector advises in its place.

_LONGEST = 500


def apply_advice(config: LinkerConfig, advice: Advice) -> LinkerConfig:
    """A copy of a config with the fields that a detector advises.

    Args:
        config: where the detector says nothing.
        advice: of the detector; what several dispute is left as it is.

    Raises:
        DamagedError: if a field is unknown to the linker or its value has no meaning.

    >>> apply_advice(LinkerConfig.default(), Advice({"min_iou": 0.1})).min_iou
    0.1
    """
    try:
        return from_dict(LinkerConfig, {**to_dict(config), **advice.linking})
    except UsageError as error:
        why = str(error)[:_LONGEST]  # names and values come from a file
        raise DamagedError(f"what the detector advises on linking fits no linker: {why}") from error


def build_linker(
    name: ConfigName,
    dataset: Dataset = "road",
    advice: Advice | None = None,
    **changes: Any,
) -> LinkerConfig:
    """The config of a name, with what a detector advises and single fields changed.

    The published config is left as published, whatever a detector advises.

    Args:
        name: `default` or `reference`.
        dataset: whose parameters.
        advice: of the detector.
        changes: fields with other values; None for those that are left as they are.

    Raises:
        UsageError: if the dataset is neither road nor ucf24, or a changed field has no meaning.
        DamagedError: if one that is advised has none.
    """
    named = LinkerConfig.reference(dataset) if name == "reference" else LinkerConfig.default(dataset)
    advised = named if name == "reference" or advice is None else apply_advice(named, advice)
    return replace(advised, **{field: value for field, value in changes.items() if value is not None})


_WORDS = {
    "min_iou": ("linking overlap", "--iou"),
    "jump_gap": ("frames that a path may miss", "--set jump_gap"),
    "cost": ("edges by", "--set cost"),
    "assignment": ("assignment", "--set assignment"),
    "trim": ("trimming", "--set trim"),
}
_LINKING = "linking."
_MOST = 4
"""Disputed values that are printed."""


def select_linker(
    config: ConfigName,
    dataset: Dataset,
    advice: Advice,
    given: Mapping[str, Any] | None = None,
    *,
    command: str = "",
) -> tuple[LinkerConfig, list[str]]:
    """The linker's configuration, and what to say of the detector's advice on it.

    The published configuration is left as published.

    Args:
        config: by name.
        dataset: whose published parameters.
        advice: of the detector.
        given: fields that were asked for; None for those that were not.
        command: whose options change it, such as "link"; the one that runs where empty.

    Raises:
        UsageError: if a field that was asked for has no meaning.
        DamagedError: if one that is advised has none.
    """
    asked = {name: value for name, value in (given or {}).items() if value is not None}
    named, chosen = build_linker(config, dataset), build_linker(config, dataset, advice, **asked)
    said = []
    for name, value in _select_known(advice.linking):
        words, option = _describe_field(name, command)
        used = getattr(chosen, name)
        if name in asked:
            said.append(f"{words} {_plain(used)}, as asked for; the detector advises {_plain(value)}")
        elif config == "reference":
            said.append(f"{words} {_plain(used)}, as published; the detector advises {_plain(value)}")
        elif used != getattr(named, name):
            said.append(f"{words} {_plain(used)}, as the detector advises{option}")
    apart = {n.removeprefix(_LINKING): v for n, v in advice.disputed.items() if n.startswith(_LINKING)}
    for field, values in _select_known(apart):
        if field not in asked:
            words, option = _describe_field(field, command)
            listed = " and ".join("none" if value is None else _plain(value) for value in values[:_MOST])
            kept = f"{words} {_plain(getattr(chosen, field))}"
            said.append(f"{kept}, since the detectors advise different ones ({listed}){option}")
    return chosen, said


def compare_with_advice(linker: object, advice: Advice) -> list[str]:
    """Where tubes were linked otherwise than their detector advises, in words.

    Args:
        linker: the configuration that tables say they were linked with; None where they do not.
        advice: of the detector.
    """
    if not isinstance(linker, Mapping):
        return []
    return [
        f"{_describe_field(name, '')[0]} of these tubes: {_plain(linker[name])}; the detector advises {_plain(value)}"
        for name, value in _select_known(advice.linking)
        if name in linker and linker[name] != value
    ]


def _select_known(named: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """What is named like a field of the linker; tables may hold any names."""
    return [(field.name, named[field.name]) for field in fields(LinkerConfig) if field.name in named]


def _describe_field(field: str, command: str) -> tuple[str, str]:
    """What a field is called, and how it is changed where an option does."""
    words, option = _WORDS.get(field, (field.replace("_", " "), ""))
    return words, f"; {f'{command} {option}'.strip()} to change" if option else ""


def _plain(value: Any) -> str:
    """A value in words; of a detector's file, which may hold anything, on one line and without control characters."""
    counted = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:g}" if counted else str(value)[:40].encode("unicode_escape").decode()
