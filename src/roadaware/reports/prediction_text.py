"""What networks found in images, as text: detections, joints, masks, names, and a detector that was exported."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadaware.corner_cases.config import BACKGROUND
from roadaware.reports import terminal
from roadaware.tasks.prediction_runs import MaskRun

if TYPE_CHECKING:
    from roadaware.models.detector import VideoDetector
    from roadaware.models.exporting import Exported

SHOWN = 10
"""Lines of a list, at most."""


def format_predictions(data: dict[str, Any], detector: VideoDetector) -> str:
    """Counts of a run, what was refused, and what comes next.

    Args:
        data: of the command, as its JSON has it.
        detector: that was asked.
    """
    names = ("videos", "frames", "boxes")
    rows = [(name, f"{data[name]:,}") for name in names]
    if data["missing"]:
        rows.append(("images that cannot be read", f"{data['missing']:,}"))
    if data["refused"]:
        rows.append(("videos refused", f"{len(data['refused']):,}"))
    kinds = ", ".join(f"{len(labels)} of {kind}" for kind, labels in detector.kinds.items())
    lines = [f"labels: {kinds}", "", terminal.format_table(["", "found"], rows)]
    if data["refused"]:
        lines += ["", "refused, and tried again by the same command:"]
        lines.append(
            terminal.format_bullets(
                f"{video}: {terminal.format_one_line(why)}" for video, why in data["refused"].items()
            )
        )
    shown = terminal.format_word(data["predictions"])
    after = f"link {shown} --output TUBES"
    if "agent" not in detector.kinds:
        after = f"evaluate corner-cases --truth TRUTH --predictions {shown} --agnostic"
    elif data["still_pictures"]:
        after = f"propose DATASET --detections {shown} --output PROPOSALS"
    return "\n".join(
        [*lines, "", f"wrote {terminal.format_cell(data['predictions'])}", f"  roadaware {after}"]
    )


def format_poses(data: dict[str, Any]) -> str:
    """Counts of joints, what cannot be read, and what comes next.

    Args:
        data: of the command, as its JSON has it.
    """
    lines = [
        f"{data['boxes']:,} boxes around {data['people']:,} people in {data['videos']:,} videos; "
        f"{data['joints_seen']:.1f} of 17 joints seen on average, none of {data['without']:,}",
        f"joints: {terminal.format_cell(data['file'])}",
    ]
    if data["gone"]:
        lines.append(f"{len(data['gone']):,} images or videos cannot be read:")
        lines.append(
            terminal.format_bullets([terminal.format_cell(reason) for reason in data["gone"][:SHOWN]])
        )
    lines.append(
        f"next: roadaware train RECIPE --set {terminal.format_word('samples.poses=' + data['file'])}"
    )
    return "\n".join(lines)


def format_masks(data: dict[str, Any], run: MaskRun) -> str:
    """Counts of masks, shares of classes, and what comes next.

    Args:
        data: of the command, as its JSON has it.
        run: that wrote them.
    """
    lines = [f"{data['written']:,} masks written, {data['there_already']:,} were there already"]
    rows = [
        (terminal.format_cell(label), f"{share:.1%}")
        for label, share in islice(data["share_of_pixels"].items(), SHOWN)
    ]
    if rows:
        lines.append(terminal.format_table(["class", "pixels"], rows))
    if data["gone"]:
        lines += [f"{data['gone']:,} images cannot be read, and are tried again by the same command:"]
        lines.append(terminal.format_bullets([terminal.format_cell(reason) for reason in data["gone_first"]]))
    if not set(BACKGROUND) & set(run.labels):
        lines.append(
            "none of the classes is called as background is (road, building, sky, ...): name those that are "
            "with `propose --set background=NAME,NAME`"
        )
    lines.append(
        f"next: roadaware propose DATASET --semantics {terminal.format_word(data['folder'])} --output PROPOSALS"
    )
    return "\n".join(lines)


def format_prelabels(data: dict[str, Any]) -> str:
    """How many boxes are named, the names most given, and boxes that are without.

    Args:
        data: of the command, as its JSON has it.
    """
    rows = [
        (terminal.format_cell(name), f"{count:,}") for name, count in list(data["prelabels"].items())[:SHOWN]
    ]
    lines = [f"{data['boxes'] - data['without']:,} of {data['boxes']:,} boxes are named"]
    lines.append(terminal.format_table(["pre-label", "boxes"], rows))
    if data["gone"]:
        lines.append(f"{data['without']:,} boxes are without, and are tried again by the same command:")
        lines.append(
            terminal.format_bullets(
                f"{count:,}: {terminal.format_cell(why)}" for why, count in data["gone"].items()
            )
        )
    return "\n".join([*lines, f"wrote {terminal.format_cell(data['folder'])}"])


def format_export(done: Exported, out: Path, why: str | None) -> str:
    """Inputs and outputs of a detector that was exported, and how far it is from PyTorch.

    Args:
        done: what exporting gave.
        out: its file.
        why: why it has no stream form, where nobody asked for clips; else None.
    """
    shapes = [("in", *each) for each in done.inputs.items()] + [
        ("out", *each) for each in done.outputs.items()
    ]
    rows = [(way, name, "x".join(map(str, shape))) for way, name, shape in shapes if "_" not in name]
    lines = [terminal.format_table(["", "name", "shape"], rows, left=3), ""]
    memories = sum("_" in name for name in done.inputs)
    if memories:
        lines.append(
            f"{memories} memories, zeros at first, come out as next_NAME and go in with the next frame"
        )
    if done.form == "clip" and why:
        lines.append(f"a clip and no stream, since {why}")
    lines.append(f"worst difference to PyTorch: {done.difference:.1e} of the largest value")
    return "\n".join(
        [*lines, f"wrote {terminal.format_cell(str(out))}, {terminal.format_bytes(done.n_bytes)}"]
    )
