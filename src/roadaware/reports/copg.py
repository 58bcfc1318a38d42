"""Proposals of corner cases drawn: each step, after Figure 5 of the paper, and the ablation of parameters."""

from __future__ import annotations

import colorsys
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
from PIL import Image, ImageDraw

from roadaware.analysis.corner_tables import CAUTION
from roadaware.arrays import Floats, Pixels
from roadaware.corner_cases.captures import Camera, Capture
from roadaware.corner_cases.config import BACKGROUND
from roadaware.corner_cases.copg import REASONS, Geometry, Proposals
from roadaware.corner_cases.cuboids import compute_cuboid_corners
from roadaware.corner_cases.runner import Order, iterate_proposals
from roadaware.errors import InputError
from roadaware.io.files import write_atomically
from roadaware.io.sources import to_printable
from roadaware.reports.drawing import Marked, build_contact_sheet, draw_marks
from roadaware.reports.lettering import Letters
from roadaware.reports.page import (
    DASHES,
    FULL,
    GREY,
    MARKERS,
    PALE,
    SERIES,
    Picture,
    create_canvas,
    set_style,
)
from roadaware.reports.terminal import (
    format_bullets,
    format_cell,
    format_interval,
    format_number,
    format_table,
)
from roadaware.reports.text import clip_label, describe_cautions, format_caution
from roadaware.scenes.sensors import open_frame

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

    from roadaware.protocols.copg_ablation import GridFound


ROWS = {"ap": "AP", "ar": "AR", "proposals": "proposals"}
_WORDS = {
    "theta_deg": "least angle, degrees",
    "min_points": "least returns",
    "max_distance_m": "farthest, m",
    "max_background": "most background",
    "max_common_iou": "most overlap",
    "inputs": "steps",
}
_PRINTED = "printed, CODA-ONCE"
_SHIFT = 0.09


def plot_ablation(table: pl.DataFrame) -> Picture:
    """AP, AR and proposals over the values of each parameter, with intervals, printed values in grey.

    Args:
        table: of `analysis.corner_tables.build_ablation_table`.
    """
    from matplotlib.figure import Figure

    held = table.filter(pl.col("knob") != "inputs")
    held = table if held.is_empty() else held
    knobs = held["knob"].unique(maintain_order=True).to_list()
    judged = bool(held["ar"].count())
    rows = list(ROWS) if judged else ["proposals"]
    with set_style():
        size = (max(FULL, 1.6 * len(knobs)), 0.7 + 1.45 * len(rows))
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(len(rows), len(knobs), sharey="row", squeeze=False)
        for line, metric in zip(grid, rows, strict=True):
            for axes, knob in zip(line, knobs, strict=True):
                _draw(axes, held.filter(pl.col("knob") == knob), metric)
            line[0].set_ylabel(ROWS[metric])
            line[0].set_ylim(bottom=0)
        for axes, knob in zip(grid[-1], knobs, strict=True):
            axes.set_xlabel(clip_label(_WORDS.get(knob, knob), 22))
        handles = {
            text: handle
            for axes in grid.flat
            for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles.keys(), loc="outside upper left", ncols=len(handles))
    return Picture("Parameters of the proposals", _caption(held, knobs, judged=judged), figure)


def _draw(axes: Axes, rows: pl.DataFrame, metric: str) -> None:
    """One parameter: a line for each configuration, and what is printed."""
    values = rows["value"].unique(maintain_order=True).to_list()
    configs = rows["config"].unique(maintain_order=True).to_list()
    for number, config in enumerate(configs):
        mine = rows.filter(pl.col("config") == config)
        at = [values.index(value) + _SHIFT * (number - (len(configs) - 1) / 2) for value in mine["value"]]
        style: dict[str, Any] = {
            "color": SERIES[number % len(SERIES)],
            "marker": MARKERS[number % len(MARKERS)],
            "linestyle": DASHES[number % len(DASHES)],
            "markersize": 4,
        }
        axes.plot(at, mine[metric].to_list(), label=config, **style)
        if metric != "proposals":
            colour = style["color"]
            ends = zip(
                at, mine[f"{metric}_low"], mine[f"{metric}_high"], mine[f"{metric}{CAUTION}"], strict=True
            )
            for x, low, high, caution in ends:
                if low is not None and high is not None:
                    axes.plot([x, x], [low, high], color=colour, linewidth=0.9)
                    axes.annotate(
                        format_caution(caution).strip(), (x, high), ha="center", va="bottom", fontsize=6
                    )
    if metric != "proposals":
        first = rows.filter(pl.col("config") == configs[0])
        printed = first[f"printed_{metric}"].to_list()
        if any(value is not None for value in printed):
            places = [values.index(value) for value in first["value"]]
            axes.plot(places, printed, label=_PRINTED, color=GREY, linestyle=":", marker="x", markersize=4)
    own = rows.filter("unchanged")["value"].unique(maintain_order=True).to_list()
    for value in own:
        axes.axvspan(values.index(value) - 0.3, values.index(value) + 0.3, color=PALE, alpha=0.5, lw=0)
    axes.set_xticks(range(len(values)), [clip_label(value, 10) for value in values])
    axes.set_xlim(-0.5, len(values) - 0.5)


def _caption(rows: pl.DataFrame, knobs: Sequence[str], *, judged: bool) -> str:
    what = "AP, AR and number of proposals" if judged else "number of proposals"
    parts = [
        f"{what} when one parameter is changed and the others stay ({', '.join(knobs)}); shaded: as it is."
    ]
    if judged:
        for knob in knobs:
            best = rows.filter(pl.col("knob") == knob).drop_nulls("ar").sort("ar", descending=True).head(1)
            for row in best.iter_rows(named=True):
                text = f"{knob}: AR is greatest, {row['ar']:.3f}, at {row['value']} ({row['config']})."
                parts.append(text)
        held = (rows[f"{metric}{CAUTION}"].drop_nulls() for metric in ("ap", "ar"))
        text = describe_cautions("".join(format_caution(why) for column in held for why in column))
        parts += [f"{text}."] if text else []
    return " ".join(parts)


# The tables that the command prints, one for each configuration and parameter.

_DOUBTFUL = "?"


def format_ablation(
    table: pl.DataFrame, found: GridFound, left_out: Sequence[str], *, rows: int, judged: bool
) -> str:
    """All of an ablation: its tables, what was left out and why, and how fast it went.

    Args:
        table: of `analysis.corner_tables.build_ablation_table`.
        found: proposals of all variants.
        left_out: parameters that were not varied, in words.
        rows: of the grid.
        judged: whether something says which objects are corner cases.
    """
    lines = [f"{found.pictures:,} images with a sweep; AP, AR in fractions, * is the configuration as it is"]
    lines += format_ablation_tables(table)
    if not judged:
        lines.append("AP and AR are unknown: nothing says which objects are corner cases (see --truth)")
    lines += [f"left out: {format_cell(each)}" for each in left_out]
    if found.skipped:
        lines.append(f"{sum(found.skipped.values()):,} images without proposals because of this:")
        reasons = (f"{count:,}: {format_cell(reason)}" for reason, count in found.skipped.items())
        lines.append(format_bullets(reasons))
    if found.made and found.seconds:
        steps = ", ".join(f"{step} {count:,}" for step, count in found.runs.items())
        rate = found.made * rows / found.seconds
        lines.append(f"{rate:,.0f} rows of an image per CPU second; runs of steps: {steps}")
    return "\n\n".join(lines)


def format_ablation_tables(rows: pl.DataFrame) -> list[str]:
    """One table for each configuration and parameter, in their order; doubtful printed numbers are marked.

    Args:
        rows: of `analysis.corner_tables.build_ablation_table`.
    """
    judged = bool(rows["ar"].count())
    found = []
    for (config, knob), part in rows.group_by("config", "knob", maintain_order=True):
        printed = bool(part["printed_ar"].count())
        header = [f"{config}: {knob}"]
        header += ["AP", "95 %", "AR", "95 %", "AR over *", "95 %", "AR50", "AR30"] if judged else []
        header += ["proposals", "pictures"]
        header += ["printed AP", "AR", "proposals", "scenes"] if printed else []
        lines = [_list_cells(row, judged=judged, printed=printed) for row in part.iter_rows(named=True)]
        found.append(format_table(header, lines))
    uncertainties = rows.drop_nulls("doubt").unique("doubt", maintain_order=True)
    found += [f"{_DOUBTFUL} {row['knob']} {row['value']}: {row['doubt']}" for row in uncertainties.to_dicts()]
    return found


def _list_cells(row: Mapping[str, Any], *, judged: bool, printed: bool) -> list[str]:
    cells = [f"{row['value']}{' *' if row['unchanged'] else ''}"]
    if judged:
        for name in ("ap", "ar"):
            cells += [
                format_number(row[name]),
                format_interval(row[f"{name}_low"], row[f"{name}_high"], 3, row[f"{name}_caution"]),
            ]
        gain = row["ar_gain"]
        cells.append("-" if gain is None else f"{gain:+.3f}")
        cells.append(
            format_interval(row["ar_gain_low"], row["ar_gain_high"], 3, row["ar_gain_caution"], sign="+")
        )
        cells += [format_number(row["ar50"]), format_number(row["ar30"])]
    cells += [f"{row['proposals']:,}", f"{row['pictures']:,}"]
    if printed:
        uncertainty = _DOUBTFUL if row["doubt"] else ""
        cells += [format_number(row["printed_ap"]), format_number(row["printed_ar"])]
        cells += [_count(row["printed_proposals"]) + uncertainty, _count(row["printed_scenes"])]
    return cells


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


STEPS = (
    "range image",
    "clusters",
    "returns",
    "initial",
    "background",
    "intermediate",
    "detections",
    "final",
    "cuboids",
    "from above",
)
"""The images of `draw_steps`, in their order; background and detections only where they were given."""
GROUND, DROPPED, KEPT, GONE = (122, 84, 40), (150, 150, 150), (255, 214, 10), (255, 99, 132)
_NEAR, _FAR = 2.0, 60.0
_STOPS = np.array(
    [[253, 231, 37], [94, 201, 98], [33, 145, 140], [59, 82, 139], [68, 1, 84]], dtype=np.float64
)
_GOLDEN = 0.61803
_TALL_PX, _GAP_PX, _DARK = 160, 4, 24
_WIDE = ("range image", "clusters")
_BEFORE_M = 0.3
_EDGES = [(a, b) for a in range(8) for b in range(a + 1, 8) if (a ^ b) in (1, 2, 4)]
"""Corners whose numbers differ in one bit share an edge."""


def write_steps(
    order: Order, folder: Path, count: int, refused: Callable[[str], None] = lambda reason: None
) -> int:
    """Draw the steps of the first images with a proposal, as PNG files; how many there were.

    Args:
        order: what is proposed.
        folder: where to; earlier drawings in it are removed.
        count: images at most.
        refused: called with the reason where an image cannot be read.

    Raises:
        DiskError: if the disk refuses.
    """
    done = 0
    folder.mkdir(exist_ok=True)
    for earlier in folder.glob("[0-9][0-9][0-9][0-9]-*.png"):
        earlier.unlink()
    for moment, capture, found, scenes in iterate_proposals(order):
        if done == count:
            break
        if not len(found):
            continue
        try:
            image = open_frame(scenes, Path(order.root), moment.video, moment.frame)
        except InputError as error:
            refused(error.message)
            continue
        held = io.BytesIO()
        Image.fromarray(draw_sheet(draw_steps(found, capture, image), columns=2)).save(held, "PNG")
        name = f"{done:04d}-{to_printable(moment.video).replace('/', '-')}-{moment.frame:06d}.png"
        write_atomically(folder / name, held.getvalue())
        done += 1
    return done


def draw_steps(proposals: Proposals, capture: Capture, image: Pixels) -> dict[str, Pixels]:
    """Draw the result of each step, in the order of `STEPS`.

    Args:
        proposals: of the capture.
        capture: what was seen.
        image: (H, W, 3) of the camera.
    """
    found = {
        "range image": draw_range_image(proposals.geometry, capture.camera),
        "clusters": draw_clusters(proposals.geometry, capture.camera),
        "returns": draw_returns(proposals.geometry, capture.camera, image),
        "initial": draw_boxes(proposals, image, proposals.initial),
    }
    if capture.semantics is not None and proposals.background is not None:
        found["background"] = draw_background(capture, image)
        found["intermediate"] = draw_boxes(proposals, image, proposals.intermediate)
    if capture.common is not None and proposals.overlap is not None:
        marks = [Marked((a, b, c, d), "", GONE) for a, b, c, d in capture.common.boxes.tolist()]
        found["detections"] = draw_marks(image, marks, line_px=_line(image))
        found["final"] = draw_boxes(proposals, image, proposals.final)
    if proposals.cuboids is not None:
        found["cuboids"] = draw_cuboids(proposals, capture.camera, image)
        found["from above"] = draw_from_above(proposals, capture.camera, image.shape[:2])
    return found


def draw_range_image(geometry: Geometry, camera: Camera | None = None) -> Pixels:
    """(rows * s, columns, 3) ranges from near (yellow) to far (violet), ground brown, nothing black.

    Args:
        geometry: of the sweep.
        camera: the middle of the image is where it looks, and lines show how wide; None for ahead.
    """
    image = geometry.image
    share = np.log(np.clip(np.abs(image), _NEAR, _FAR) / _NEAR) / np.log(_FAR / _NEAR)
    place = share * (len(_STOPS) - 1)
    low = np.minimum(place.astype(np.int64), len(_STOPS) - 2)
    colours = _STOPS[low] + (place - low)[..., None] * (_STOPS[low + 1] - _STOPS[low])
    colours[image < 0] = GROUND
    colours[image == 0] = 0
    return _draw_panorama(colours.astype(np.uint8), camera)


def draw_clusters(geometry: Geometry, camera: Camera | None = None) -> Pixels:
    """(rows * s, columns, 3) clusters in colours; those that a limit dropped grey, ground brown, else black.

    Args:
        geometry: of the sweep.
        camera: as for `draw_range_image`.
    """
    labels = geometry.clusters.image
    colours = build_cluster_palette(geometry)[labels]
    colours[geometry.image < 0] = GROUND
    colours[geometry.image == 0] = 0
    return _draw_panorama(colours, camera)


def draw_returns(geometry: Geometry, camera: Camera, image: Pixels) -> Pixels:
    """(H, W, 3) the image with all returns in the colours of their clusters, ground brown.

    Args:
        geometry: of the sweep.
        camera: that took the image.
        image: (H, W, 3).
    """
    found = (image * 0.6).astype(np.uint8)
    pixels, seen = _project_returns(geometry, camera)
    order = np.argsort(-geometry.grid.ranges[seen], kind="stable")
    places, pixels = np.flatnonzero(seen)[order], pixels[seen][order].astype(np.int64)
    colours = build_cluster_palette(geometry)[geometry.clusters.of_return[places]]
    colours[geometry.ground.removed[places]] = GROUND
    size = max(2, image.shape[0] // 300)
    for down in range(size):
        for across in range(size):
            rows = np.minimum(pixels[:, 1] + down, image.shape[0] - 1)
            columns = np.minimum(pixels[:, 0] + across, image.shape[1] - 1)
            found[rows, columns] = colours
    return found


def draw_boxes(proposals: Proposals, image: Pixels, kept: npt.NDArray[np.bool_]) -> Pixels:
    """(H, W, 3) the image with some of the proposals, the likeliest on top, with scores where they are few.

    Args:
        proposals: of the image.
        image: (H, W, 3).
        kept: (m,) which of the initial proposals.
    """
    places = np.flatnonzero(kept)
    places = places[np.argsort(proposals.scores[places], kind="stable")]
    few = len(places) <= 12
    marks = [
        Marked(tuple(proposals.boxes.edges[n].tolist()), f"{proposals.scores[n]:.2f}" if few else "", KEPT)
        for n in places.tolist()
    ]
    return draw_marks(image, marks, line_px=_line(image))


def draw_cuboids(proposals: Proposals, camera: Camera, image: Pixels) -> Pixels:
    """(H, W, 3) the image with the edges of the final proposals' cuboids, nothing of those that reach behind the camera.

    Args:
        proposals: of the image, with cuboids.
        camera: that took the image.
        image: (H, W, 3).
    """
    shown = Image.fromarray(image)
    pen = ImageDraw.Draw(shown)
    way = camera.camera_SE3_lidar
    for corners in _list_corners(proposals):
        places = corners @ way[:3, :3].T + way[:3, 3]
        if (places[:, 2] > _BEFORE_M).all():
            pixels = (places @ camera.intrinsics.T)[:, :2] / places[:, 2:]
            for one, other in _EDGES:
                pen.line([*pixels[one].tolist(), *pixels[other].tolist()], fill=KEPT, width=_line(image))
    return np.asarray(shown)


def draw_from_above(proposals: Proposals, camera: Camera, size: tuple[int, int]) -> Pixels:
    """(H, W, 3) what the camera looks at, from above: returns grey, ground brown, cuboids yellow, a ring every 10 m.

    The camera is in the middle of the lower edge and looks up; where the ground was not found, all returns are grey.

    Args:
        proposals: with cuboids.
        camera: that took the image.
        size: height and width of the drawing.
    """
    height, width = size
    far = float(
        np.max(proposals.geometry.clusters.nearest_m, initial=10.0, where=proposals.geometry.limited == 0)
    )
    scale = height / min(max(far, 10.0) + 5.0, _FAR)
    axis = camera.camera_SE3_lidar[2, :2] / max(float(np.linalg.norm(camera.camera_SE3_lidar[2, :2])), 1e-9)

    def place(points: Floats) -> Floats:
        ahead = points[..., :2] @ axis
        left = points[..., :2] @ np.array([-axis[1], axis[0]])
        return np.stack([width / 2 - left * scale, height - ahead * scale], axis=-1)

    found = np.full((height, width, 3), _DARK, dtype=np.uint8)
    geometry = proposals.geometry
    usable = geometry.checked.usable
    pixels = np.floor(place(geometry.points[usable].astype(np.float64)))
    inside = (pixels >= 0).all(axis=1) & (pixels < [width, height]).all(axis=1)
    columns, rows = pixels[inside].astype(np.int64).T
    ground = geometry.ground.removed[usable][inside]
    # Things over ground: what stands is drawn last.
    for mask, colour in ((ground, GROUND), (~ground, DROPPED)):
        found[rows[mask], columns[mask]] = colour
    shown = Image.fromarray(found)
    pen = ImageDraw.Draw(shown)
    for away in range(10, int(height / scale) + 1, 10):
        box = [
            width / 2 - away * scale,
            height - away * scale,
            width / 2 + away * scale,
            height + away * scale,
        ]
        pen.arc(box, 180, 360, fill=(70, 70, 70))
        Letters(12).write(pen, (width / 2 + 3, height - away * scale + 2), f"{away} m", DROPPED)
    for corners in _list_corners(proposals):
        outline = place(corners[[0, 2, 6, 4]])
        pen.polygon([tuple(each) for each in outline.tolist()], outline=KEPT)
    return np.asarray(shown)


def _list_corners(proposals: Proposals) -> list[Floats]:
    """(8, 3) corners of the cuboid of each final proposal, in the LiDAR's frame; the best last."""
    cuboids = proposals.cuboids
    if cuboids is None:
        return []
    places = np.flatnonzero(proposals.final)
    places = places[np.argsort(proposals.scores[places], kind="stable")]
    held = np.column_stack([cuboids.centres, cuboids.sizes, cuboids.yaw])
    return [compute_cuboid_corners(held[place]) for place in places.tolist()]


def draw_background(capture: Capture, image: Pixels, names: Sequence[str] | None = None) -> Pixels:
    """(H, W, 3) the image with background in violet.

    Args:
        capture: with a semantic map.
        image: (H, W, 3).
        names: of the classes that are background (default: those of the default config).
    """
    if capture.semantics is None:
        return image
    wanted = [code for code, name in enumerate(capture.semantics.names) if name in (names or BACKGROUND)]
    found = image.astype(np.float64)
    hidden = np.isin(capture.semantics.classes, wanted)
    found[hidden] = 0.45 * found[hidden] + 0.55 * np.array([120, 80, 200])
    return found.astype(np.uint8)


def build_cluster_palette(geometry: Geometry) -> Pixels:
    """(k + 1, 3) a colour for each cluster, grey for those that a limit dropped; the first is of none.

    Args:
        geometry: of the sweep.
    """
    count = len(geometry.clusters)
    hues = [colorsys.hsv_to_rgb(number * _GOLDEN % 1, 0.85, 1.0) for number in range(count + 1)]
    found = (np.array(hues).reshape(-1, 3) * 255).astype(np.uint8)
    found[1:][geometry.limited != REASONS.index("kept")] = DROPPED
    found[0] = DROPPED
    return found


def draw_sheet(steps: Mapping[str, Pixels], *, width_px: int = 1240, columns: int = 1) -> Pixels:
    """(H, width, 3) the images of all steps below each other, each with its name.

    Args:
        steps: of `draw_steps`.
        width_px: of the whole; images are scaled to it.
        columns: how many images of the camera stand beside each other; range images take the whole width.
    """
    wide = [name for name in steps if name in _WIDE]
    rows = [[name] for name in wide]
    others = [name for name in steps if name not in wide]
    rows += [others[n : n + columns] for n in range(0, len(others), columns)]
    found: list[Pixels] = []
    for row in rows:
        count = 1 if row[0] in wide else columns
        room = (width_px - (count - 1) * _GAP_PX) // count
        images = [_resize_image(name, steps[name], room) for name in row]
        line = np.full((images[0].shape[0], width_px, 3), _DARK, dtype=np.uint8)
        for place, image in enumerate(images):
            line[:, place * (room + _GAP_PX) :][:, :room] = image
        found += [line, np.full((_GAP_PX, width_px, 3), _DARK, dtype=np.uint8)]
    return np.concatenate(found[:-1])


def _line(image: Pixels) -> int:
    """Width of frames that are still seen where a sheet shows the image at half its size."""
    return max(1, int(image.shape[1]) // 420)


def _resize_image(name: str, image: Pixels, width_px: int) -> Pixels:
    height = max(1, round(image.shape[0] * width_px / image.shape[1]))
    way = Image.Resampling.LANCZOS
    if name in _WIDE:
        height, way = max(height, _TALL_PX), Image.Resampling.NEAREST
    scaled = np.asarray(Image.fromarray(image).resize((width_px, height), way))
    return draw_marks(scaled, [], title=name)


def _draw_panorama(colours: Pixels, camera: Camera | None) -> Pixels:
    """The image as one looks around, what lies to the left on the left, its rows tall enough to be seen."""
    columns = colours.shape[1]
    middle = 0
    if camera is not None:
        axis = camera.camera_SE3_lidar[2, :3]
        middle = round(float(np.arctan2(axis[1], axis[0])) / (2 * np.pi) * columns)
    found = np.roll(colours, columns // 2 - middle, axis=1)[:, ::-1]
    found = np.repeat(found, max(1, -(-_TALL_PX // len(colours))), axis=0)
    if camera is not None:
        half = np.arctan(camera.width_px / 2 / camera.intrinsics[0, 0]) / (2 * np.pi) * columns
        for edge in (columns / 2 - half, columns / 2 + half):
            # A sheet takes every second column or so, and no line may fall between them.
            found[:, np.arange(int(edge), int(edge) + max(1, columns // 700)) % columns] = 255
    return np.ascontiguousarray(found)


def _project_returns(geometry: Geometry, camera: Camera) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """(n, 2) pixels of the returns, and (n,) which lie in the image."""
    way = camera.camera_SE3_lidar
    places = geometry.points.astype(np.float64) @ way[:3, :3].T + way[:3, 3]
    with np.errstate(divide="ignore", invalid="ignore"):
        pixels = (places @ camera.intrinsics.T)[:, :2] / places[:, 2:]
        inside = (pixels >= 0).all(1) & (pixels < [camera.width_px, camera.height_px]).all(1)
    return pixels, inside & (places[:, 2] > 0.1) & geometry.checked.usable


# A contact sheet as an image of a report: frames of videos side by side.


def plot_sheet(frames: Sequence[npt.NDArray[np.uint8]], columns: int, *, title: str, caption: str) -> Picture:
    """Frames side by side, row by row, over the full width of a page.

    Args:
        frames: (n) of (H, W, 3), all of one size, at least one.
        columns: of the sheet.
        title: one line.
        caption: what is seen.
    """
    sheet = build_contact_sheet(frames, columns)
    height, width = sheet.shape[:2]
    with set_style():
        figure, axes = create_canvas(FULL, FULL * height / width)
        axes.set_position((0, 0, 1, 1))
        axes.imshow(sheet, interpolation="lanczos", aspect="auto")
        axes.set_axis_off()
    return Picture(title, caption, figure)
