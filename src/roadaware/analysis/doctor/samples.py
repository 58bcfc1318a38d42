"""Checks of a samples file: class numbers, units of time, names, order, the wrong split."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from roadaware.analysis.doctor.diagnosis import (
    Diagnosis,
    format_rows,
    report_error,
    report_note,
    report_suspicion,
)
from roadaware.arrays import Floats, Ints
from roadaware.statistics.classification import Ranking

# What can be wrong with a model's scores: their scale, their columns, their order.

COLUMNS = {"action": 1, "intention": 3, "risk": 12}
_ROUNDING = 1e-6
_STRANGERS = 0.8
_MIN_PAIRS = 20
_BULK = 0.5


def check_column_count(scores: Floats, task: str) -> list[Diagnosis]:
    """Whether the rows have as many numbers as the task has scores.

    Args:
        scores: (n, k) as read.
        task: action, intention or risk.
    """
    expected, found = COLUMNS[task], scores.shape[1]
    if found == expected:
        return []
    other = [name for name, count in COLUMNS.items() if count == found]
    remedy = f"Write {expected} per row."
    if task == "action" and found == 2:
        remedy = "Write the score of crossing alone: the second of the two, if they are a softmax."
    elif other:
        remedy = f"{found} numbers are those of task {other[0]}: say --task {other[0]}."
    says = f"The task {task} has {expected} score{'s' * (expected > 1)} per sample, the file has {found}."
    return report_error("column_count", says, f"{found} columns in {len(scores)} rows", remedy)


def score_scale(scores: Floats) -> list[Diagnosis]:
    """Whether the numbers are probabilities, rather than percent or logits.

    What most rows say is taken for the scale; a few rows outside [0, 1] are named instead.

    Args:
        scores: (n, k) as read.
    """
    low, high = float(scores.min()), float(scores.max())
    evidence = f"the numbers run from {low:g} to {high:g}"
    if low >= -_ROUNDING and high <= 1 + _ROUNDING:
        return _sums(scores)
    outside = np.asarray((scores < -_ROUNDING) | (scores > 1 + _ROUNDING))
    rows = np.asarray(outside.any(axis=1))
    if rows.mean() < _BULK:
        says = f"{int(outside.sum())} of {scores.size} scores lie outside [0, 1], in {int(rows.sum())} rows."
        first = scores[np.arange(len(scores)), outside.argmax(axis=1)]
        remedy = "Write probabilities; most rows hold them already, so look at what made these."
        return report_error("scores_outside", says, format_rows(rows, first), remedy)
    if low >= 0 and high <= 100:
        return report_error(
            "percent", "The scores are percent, not probabilities.", evidence, "Divide by 100."
        )
    function = "sigmoid" if scores.shape[1] == 1 else "softmax"
    says = "The scores are logits or distances, not probabilities."
    return report_error("logits", says, evidence, f"Apply a {function} before writing them.")


def check_constant_scores(scores: Floats) -> list[Diagnosis]:
    """Whether the scores of all samples are equal.

    Args:
        scores: (n, k) as read.
    """
    if len(scores) < 2 or np.ptp(scores, axis=0).max() > 0:
        return []
    says = "Every sample has the same scores: a ranking measure can only be chance."
    evidence = "all rows are " + ", ".join(f"{value:g}" for value in scores[0][:4])
    return report_error("constant", says, evidence, "Check that the model was loaded and saw its inputs.")


def check_class_order(scores: Floats, truth: Ints) -> list[Diagnosis]:
    """Whether the columns are in the order of the classes: reversed, or moved by one.

    Args:
        scores: (n, k) as read.
        truth: (n,) true classes 0..K-1.
    """
    if scores.shape[1] == 1:
        score = scores[:, 0]
        # Area under the receiver operating characteristic; None for a single class
        once = np.ones((1, len(score)), dtype=np.int32)
        _, area = Ranking.of(truth == 1, score).areas(once, np.arange(len(score)))
        auc = None if np.isnan(area[0]) else float(area[0])
        if auc is None or auc >= 0.45:
            return []
        says = "The score is that of not crossing: it ranks crossing pedestrians below the others."
        evidence = f"AUC {auc:.3f}; 1 - score would give {1 - auc:.3f}"
        return report_suspicion(
            "reversed", says, evidence, "Write 1 - score, or the other column of the softmax."
        )
    k = scores.shape[1]
    if truth.min() < 0 or truth.max() >= k:
        return []
    readings = {
        "as written": scores,
        "reversed": scores[:, ::-1],
        "moved by one to the left": np.roll(scores, -1, axis=1),
        "moved by one to the right": np.roll(scores, 1, axis=1),
    }
    values = {name: _balanced_accuracy(read.argmax(axis=1), truth) for name, read in readings.items()}
    best = max(values, key=lambda name: values[name])
    if best == "as written" or values[best] < values["as written"] + 0.1:
        return []
    says = f"The columns fit the classes far better when they are {best}."
    evidence = f"balanced accuracy {values['as written']:.3f} as written, {values[best]:.3f} {best}"
    return report_suspicion(
        "class_order", says, evidence, "Write the columns in the order of the classes 0, 1, 2, ..."
    )


def check_row_alignment(scores: Floats, pedestrian: npt.NDArray[np.str_]) -> list[Diagnosis]:
    """Whether neighbouring samples of one pedestrian are more alike than samples of strangers.

    Observations of one pedestrian overlap, so a model says nearly the same of them. Where neighbours
    differ as much as strangers, rows of scores and samples are not in the same order.

    Args:
        scores: (n, k) as read.
        pedestrian: (n,) whose sample each row is.
    """
    neighbours = pedestrian[1:] == pedestrian[:-1]
    # Fewer pairs may be alike or not by chance.
    if neighbours.sum() < _MIN_PAIRS:
        return []
    # Mean absolute difference of all pairs of rows, from one sort per column
    n = len(scores)
    ranks = 2 * np.arange(1, n + 1) - n - 1
    strangers = float(2 * (ranks[:, None] * np.sort(scores, axis=0)).sum(axis=0).mean() / (n * (n - 1)))
    near = float(np.abs(np.diff(scores, axis=0))[neighbours].mean())
    if strangers == 0 or near < _STRANGERS * strangers:
        return []
    says = "Scores of one pedestrian's neighbouring samples differ as much as those of strangers."
    evidence = f"mean difference {near:.3f} between neighbours, {strangers:.3f} between random rows"
    remedy = "Write the scores in the order of the samples: no shuffling in the data loader, no sorting."
    return report_suspicion("rows_shuffled", says, evidence, remedy)


def _sums(scores: Floats) -> list[Diagnosis]:
    sums = scores.sum(axis=1)
    # Files hold few decimals: sums of rounded shares are off by some of them.
    if scores.shape[1] == 1 or np.allclose(sums, 1.0, atol=1e-3):
        return []
    off = int((np.abs(sums - 1.0) > 1e-3).sum())
    evidence = f"{off} of {len(sums)} rows do not add up to 1 (from {sums.min():.3f} to {sums.max():.3f})"
    says = "The scores of the classes do not add up to 1: they are not a softmax."
    return report_suspicion(
        "sums", says, evidence, "Apply a softmax; the published AUC is undefined without."
    )


def _balanced_accuracy(decided: npt.NDArray[np.int64], truth: Ints) -> float:
    return float(np.mean([np.mean(decided[truth == k] == k) for k in np.unique(truth)]))


Names = npt.NDArray[np.str_]

CLASSES = {"action": 2, "intention": 3, "risk": 12}
_TTE = {"action": (30, 90), "risk": (30, 90)}
_STRIDE = 10


def check_class_base(truth: Floats, task: str, columns: int) -> list[Diagnosis]:
    """Whether classes count from 0.

    Args:
        truth: (n,) as written.
        task: action, intention or risk.
        columns: scores per sample; another task is only named if it has as many.
    """
    classes, low, high = CLASSES[task], truth.min(), truth.max()
    values = np.unique(truth)
    evidence = f"truth holds {_format_values(values)}; {task} has the classes 0..{classes - 1}"
    broken = np.asarray(truth != np.floor(truth))
    if broken.any():
        says = f"{_share(broken)} not whole numbers: these may be probabilities or scores."
        named = f"{format_rows(broken, truth)}; {evidence}"
        return report_error("truth_not_classes", says, named, "Write the index of the true class.")
    if low >= 0 and high < classes:
        if len(values) > 1:
            return []
        says = "All samples are of one class: AUC, average precision and recall of the others are undefined."
        return report_suspicion(
            "one_class", says, f"truth holds {_format_values(values)}", "Check the labels and the split."
        )
    if low == 1 and high == classes:
        return report_error("truth_base", "The classes count from 1.", evidence, "Subtract 1.")
    if task == "action" and low == -1 and high < classes:
        says = "-1 marks pedestrians for whom crossing is irrelevant: they are no class."
        return report_error(
            "truth_irrelevant", says, evidence, "Write 0 for them, as the protocol does, or leave them out."
        )
    outside = np.asarray((truth < 0) | (truth >= classes))
    says = f"{_share(outside)} no class of {task}."
    fitting = [name for name, n in CLASSES.items() if COLUMNS[name] == columns and low >= 0 and high < n]
    remedy = (
        f"Say --task {fitting[0]}." if fitting else f"Write the index of the true class, 0..{classes - 1}."
    )
    return report_error("truth_classes", says, f"{format_rows(outside, truth)}; {evidence}", remedy)


def check_time_unit(tte_frames: Floats) -> list[Diagnosis]:
    """Whether the time to event counts frames, rather than seconds or milliseconds.

    Args:
        tte_frames: (n,) as written.
    """
    low, high = float(tte_frames.min()), float(tte_frames.max())
    evidence = f"tte_frames runs from {low:g} to {high:g}"
    if low < 0:
        says = "Some times to event are negative: the observation would end after the event."
        return report_error("tte_negative", says, evidence, "Write event frame minus end of the observation.")
    if (tte_frames != np.floor(tte_frames)).any() or (high <= 10 and high > 0):
        return report_error(
            "tte_seconds", "The time to event is in seconds.", evidence, "Multiply by the frame rate."
        )
    if high >= 900:
        says = "The time to event looks like milliseconds, or a frame number."
        return report_suspicion("tte_unit", says, evidence, "Write the number of frames until the event.")
    return []


def check_frame_rate(tte_frames: Floats, pedestrian: Names, task: str) -> list[Diagnosis]:
    """Whether range and step of the times to event are those of the 30 Hz protocol.

    Args:
        tte_frames: (n,) as written.
        pedestrian: (n,) whose sample each row is.
        task: action, intention or risk.
    """
    if task not in _TTE or (tte_frames != np.floor(tte_frames)).any():
        return []
    low, high = _TTE[task]
    same = pedestrian[1:] == pedestrian[:-1]
    steps = -np.diff(tte_frames)[same]
    step = float(np.median(steps)) if len(steps) else float(_STRIDE)
    found = f"times to event {tte_frames.min():g}..{tte_frames.max():g}, usual step {step:g}"
    if 0 < tte_frames.max() <= 10:
        return []
    if tte_frames.max() == high and step == _STRIDE:
        return []
    for rate in (10.0, 15.0, 20.0, 25.0, 60.0):
        if abs(tte_frames.max() - high * rate / 30) <= 1 and abs(tte_frames.min() - low * rate / 30) <= 1:
            says = f"The times to event are those of video at {rate:g} frames per second."
            remedy = f"The protocol counts frames at 30 per second: multiply by {30 / rate:g}."
            return report_suspicion("frame_rate", says, f"{found}; expected {low}..{high}", remedy)
    says = "Step or range of the times to event are not those of the IV 2024 protocol."
    remedy = (
        "Fine for data of your own. For its tables: observations of 15 frames every 10 frames, ending "
        "30 to 90 frames before the event; steps of 3 or 6 up to 60 are those of WACV 2021 and IV 2022."
    )
    return report_note("sampling", says, f"{found}; expected {low}..{high}, step {_STRIDE}", remedy)


def check_row_order(pedestrian: Names, tte_frames: Floats) -> list[Diagnosis]:
    """Whether rows are in extraction order: one pedestrian after the other, the time to event falling.

    Args:
        pedestrian: (n,) whose sample each row is.
        tte_frames: (n,) as written.
    """
    starts = np.concatenate([[True], pedestrian[1:] != pedestrian[:-1]])
    blocks, people = int(starts.sum()), len(np.unique(pedestrian))
    if blocks > people:
        names, times = np.unique(pedestrian[starts], return_counts=True)
        again = str(names[times > 1][0])
        says = "Rows of one pedestrian do not stand together: the file is shuffled or sorted otherwise."
        evidence = f"{blocks} blocks of {people} pedestrians; {again} comes again later"
        remedy = "Keep the extraction order; soft, hard and confidence-delta metrics depend on it."
        return report_error("rows_not_contiguous", says, evidence, remedy)
    rising = (np.diff(tte_frames) > 0) & ~starts[1:]
    if rising.any():
        row = int(np.flatnonzero(rising)[0])
        says = "The time to event rises inside a pedestrian: rows run backwards, or are shuffled."
        evidence = (
            f"{int(rising.sum())} rises; {pedestrian[row]} goes from {tte_frames[row]:g} "
            f"to {tte_frames[row + 1]:g}"
        )
        return report_suspicion("tte_rises", says, evidence, "Order samples from early to late.")
    return []


def check_repeated_rows(scores: Floats, pedestrian: Names, tte_frames: Floats) -> list[Diagnosis]:
    """Whether samples stand twice in the file, which lets them count twice.

    Args:
        scores: (n, k) as read.
        pedestrian: (n,) whose sample each row is.
        tte_frames: (n,) as written.
    """
    if len({*tte_frames.tolist()}) < 2:  # times that were left open tell no sample from another
        return []
    rows = zip(pedestrian.tolist(), tte_frames.tolist(), map(tuple, scores.tolist()), strict=True)
    seen: set[tuple[str, float, tuple[float, ...]]] = set()
    again = []
    for place, row in enumerate(rows):
        if row in seen:
            again.append(place)
        seen.add(row)
    if not again:
        return []
    says = "Samples stand more than once in the file, and count as often."
    evidence = (
        f"{len(again)} of {len(scores)} rows have pedestrian, time to event and scores of an earlier one; "
        f"first {pedestrian[again[0]]} at {tte_frames[again[0]]:g}"
    )
    return report_suspicion("rows_repeated", says, evidence, "Write each sample once, in scores and samples.")


def check_unknown_names(pedestrian: Iterable[str], known: Sequence[str], dataset: str) -> list[Diagnosis]:
    """Whether the pedestrians are those of the dataset."""
    names = sorted(set(pedestrian))
    everybody = set(known)
    strangers = [name for name in names if name not in everybody]
    if not strangers:
        return []
    meant = [(name, near) for name in strangers[:200] if (near := _near(name, known, everybody))]
    shown = "; ".join(f"{name!r}: did you mean {near!r}?" for name, near in meant[:3])
    says = f"{len(strangers)} of {len(names)} pedestrians are not in {dataset}."
    evidence = shown or f"for example {', '.join(repr(name) for name in strangers[:3])}"
    remedy = (
        f"Write the identifiers of {dataset} whole, such as {known[0]!r}." if known else "Check the data."
    )
    return report_error("unknown_pedestrians", says, evidence, remedy)


def check_split_size(
    rows: int, expected: int | None, counts: Mapping[str, int], what: str
) -> list[Diagnosis]:
    """Whether the number of rows is that of another split or protocol.

    Args:
        rows: in the file.
        expected: of the split that was meant, None where that is not known.
        counts: name of a split or protocol to its number of samples.
        what: the file.
    """
    if rows == expected:
        return []
    other = [name for name, count in counts.items() if count == rows]
    evidence = f"{rows} rows" + ("" if expected is None else f", {expected} expected")
    if other:
        says = f"The number of rows of {what} is that of {other[0]}."
        return report_error(
            "wrong_split", says, evidence, f"Score the other split, or compare with {other[0]}."
        )
    if not counts:
        says = f"The number of rows of {what} is not the one expected."
        remedy = "One row per sample, none left out; --data DATASET=PATH tells if it is another split."
        return report_error("row_count", says, evidence, remedy)
    shown = ", ".join(f"{name} {count}" for name, count in list(counts.items())[:8])
    says = f"The number of rows of {what} is that of no split known."
    return report_error(
        "row_count", says, f"{evidence}; known are {shown}", "One row per sample, none left out."
    )


def check_same_order(found: Sequence[str], expected: Sequence[str]) -> list[Diagnosis]:
    """Whether the pedestrians of the rows are those of the extraction, in its order.

    Args:
        found: (n,) names in the file.
        expected: (n,) names in the published extraction.
    """
    if list(found) == list(expected) or len(found) != len(expected):
        return []
    row = next(k for k, (a, b) in enumerate(zip(found, expected, strict=True)) if a != b)
    evidence = f"row {row + 1} is of {found[row]!r}, the extraction has {expected[row]!r}"
    remedy = "Videos are sorted by name, pedestrians inside a video by name as text: 0_1_10 before 0_1_2."
    if sorted(found) == sorted(expected):
        return report_error(
            "row_order", "The rows are those of the extraction in another order.", evidence, remedy
        )
    return report_suspicion("other_samples", "The rows are not those of the extraction.", evidence, remedy)


def check_flipped_truth(truth: Floats, expected: Floats) -> list[Diagnosis]:
    """Whether the ground truth is that of the dataset, or its opposite.

    Args:
        truth: (n,) in the file.
        expected: (n,) by the dataset.
    """
    if len(truth) != len(expected) or not len(truth):
        return []
    agree = float((truth == expected).mean())
    if agree == 1:
        return []
    if set(np.unique(truth)) <= {0.0, 1.0} and (1 - truth == expected).mean() > max(agree, 0.9):
        says = "The truth is turned round: 1 must mean crossing."
        return report_error(
            "truth_flipped", says, f"{agree:.1%} of the rows agree with the data", "Write 1 - truth."
        )
    says = "The truth differs from the dataset's."
    return report_suspicion(
        "truth_differs",
        says,
        f"{agree:.1%} of the rows agree with the data",
        "Compare the two by pedestrian.",
    )


def _near(name: str, known: Sequence[str], everybody: set[str]) -> str | None:
    """The known name that was probably meant: without or with a suffix, a prefix or a path."""
    core = re.split(r"[/\\:]", name)[-1]
    for candidate in (core, f"{core}b", f"{core}p", core.rstrip("bp"), f"0_{core}", f"0_{core}b"):
        if candidate in everybody:
            return candidate
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    return close[0] if close else None


def _share(odd: npt.NDArray[np.bool_]) -> str:
    count = int(odd.sum())
    return f"{count} of {len(odd)} truths {'is' if count == 1 else 'are'}"


def _format_values(values: Floats) -> str:
    shown = ", ".join(f"{value:g}" for value in values[:8])
    return shown + (", ..." if len(values) > 8 else "")
