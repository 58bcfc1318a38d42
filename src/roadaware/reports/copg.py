"""Images of each step of the proposals of corner cases, after Figure 5 of the paper."""

from __future__ import annotations

import colorsys
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from roadaware.arrays import Floats, Pixels
from roadaware.corner_cases.captures import Camera, Capture
from roadaware.corner_cases.config import BACKGROUND
from roadaware.corner_cases.copg import REASONS, Geometry, Proposals
from roadaware.corner_cases.cuboids import compute_cuboid_corners
from roadaware.corner_cases.runner import Order, iterate_proposals
from roadaware.errors import InputError
from roadaware.io.files import write_atomically
from roadaware.reports.drawing import Marked, build_contact_sheet, draw_marks, load_font
from roadaware.reports.picture import FULL, Picture, create_canvas, set_style
from roadaware.scenes.sensors import open_frame

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
        name = f"{done:04d}-{moment.video.replace('/', '-')}-{moment.frame:06d}.png"
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
        pen.text((width / 2 + 3, height - away * scale + 2), f"{away} m", fill=DROPPED, font=load_font(12))
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
