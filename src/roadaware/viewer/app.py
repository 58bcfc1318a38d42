"""The addresses of the viewer: page, JSON about what was opened, films, and verdicts, which are kept."""

from __future__ import annotations

import io
import json
import logging
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import wraps
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from roadaware.errors import DamagedError, DiskError, InputError, RoadawareError, UsageError
from roadaware.formats.corrections import DRAWN
from roadaware.io.files import build_disk_error, lock_folder, read_regular
from roadaware.io.sources import to_printable
from roadaware.scenes.schema import CORNERS
from roadaware.viewer.clips import TYPES, ClipMaker, parse_order
from roadaware.viewer.films import FilmFinder, Waveforms, open_served
from roadaware.viewer.filters import parse_conditions
from roadaware.viewer.index import Index
from roadaware.viewer.opening import Opened, TableSource
from roadaware.viewer.overlays import Overlays
from roadaware.viewer.sweeps import Sweeps

FILE = "verdicts.jsonl"
VERDICTS = ("right", "wrong", "unsure")
_LIMIT = 1 << 28
_MOST_TEXT = 2_000


@dataclass(frozen=True)
class Verdict:
    """What somebody says of a tube, or of a box.

    Args:
        annotator: who.
        video: where.
        tube: the path; None for a box without one.
        box: the box; None for a whole tube.
        frame: at which it was looked.
        verdict: right, wrong or unsure; empty to take it back.
        note: in words.
    """

    annotator: str
    video: str
    tube: int | None
    box: int | None
    frame: int
    verdict: str
    note: str = ""

    def __post_init__(self) -> None:
        numbers = [each for each in (self.tube, self.box) if each is not None]
        whole = all(type(each) is int and 0 <= each < 1 << 62 for each in (*numbers, self.frame))
        if len(numbers) != 1 or not whole:
            raise UsageError("a verdict is of one tube or of one box, at a frame from 0 on")
        if self.verdict not in (*VERDICTS, ""):
            raise UsageError(f"a verdict is {', '.join(VERDICTS)} or empty")
        for text in (self.annotator, self.note, self.video):
            if not isinstance(text, str) or len(text) > _MOST_TEXT:
                raise UsageError(f"names and notes are texts of up to {_MOST_TEXT:,} characters")

    @property
    def target(self) -> tuple[str, int | None, int | None]:
        """What it is of."""
        return self.video, self.tube, self.box


class VerdictFile:
    """The verdicts beside a run: one line for each, the last of a person on a thing counts.

    Lines are only ever appended, in one write under a lock, so that neither two tabs nor two viewers lose any.

    Args:
        folder: of the run.
        digest: of the set that is judged; verdicts on a set that stood there before do not count.
    """

    def __init__(self, folder: Path, digest: str = "") -> None:
        self.path, self._digest = folder / FILE, digest

    def add(self, verdict: Verdict) -> None:
        """Write a verdict down; it is on the disk when this returns.

        Raises:
            DiskError: if the disk refuses.
        """
        line = json.dumps({"set": self._digest, **vars(verdict)}, ensure_ascii=True).encode() + b"\n"
        try:
            with lock_folder(self.path.parent):
                flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
                handle = os.open(self.path, flags, 0o666)
                try:
                    size = os.fstat(handle).st_size
                    # A line that a full disk or a kill cut off is ended first, or it would spoil this one.
                    if size and os.pread(handle, 1, size - 1) != b"\n":
                        line = b"\n" + line
                    if os.write(handle, line) != len(line):
                        os.ftruncate(handle, size)
                        raise OSError("the disk took a part of a line")
                    os.fsync(handle)
                finally:
                    os.close(handle)
        except OSError as error:
            raise build_disk_error(self.path, len(line), error) from error

    def read(self) -> list[Verdict]:
        """The verdicts that count, in the order in which things were first judged; lines that are none are passed over.

        Raises:
            DamagedError: if the file cannot be read.
        """
        try:
            data = read_regular(self.path, limit=_LIMIT)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise DamagedError(f"expected verdicts, found: {error}", where=str(self.path)) from error
        found: dict[tuple[Any, ...], Verdict] = {}
        for line in data.splitlines():
            try:
                record = json.loads(line)
                if record.pop("set", "") != self._digest:
                    continue
                verdict = Verdict(**record)
            except (AttributeError, ValueError, TypeError, RecursionError, UsageError):
                continue
            found[(verdict.annotator, *verdict.target)] = verdict
        return [verdict for verdict in found.values() if verdict.verdict or verdict.note]


def build_corrections(
    source: TableSource, verdicts: Iterable[Verdict]
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Verdicts as corrected proposals, as `label import` reads them, and what was left out, by reason.

    An image is corrected where an annotator has judged all of its boxes: what is right stays with its number, what is wrong
    is gone. Images with a box that is not judged, or of which somebody is unsure, are left out. A verdict on a tube
    is one on each of its boxes.

    Returns:
        a table with the columns of `corrections.DRAWN`; an image in which nothing stayed is a row without corners.
    """
    held = list(verdicts)
    columns = source.scan("boxes").collect_schema().names()
    tube = pl.col("tube") if "tube" in columns else pl.lit(None, pl.Int64).alias("tube")
    videos = sorted({verdict.video for verdict in held})
    boxes = source.scan("boxes").select("box", pl.col("video").cast(pl.String), "frame", *CORNERS, tube)
    table = boxes.filter(pl.col("video").is_in(videos)).collect()
    parts, left = [pl.DataFrame(schema=DRAWN)], {"images with boxes that are not judged": 0}
    for annotator in sorted({verdict.annotator for verdict in held}):
        mine = [verdict for verdict in held if verdict.annotator == annotator]
        of_tube = {v.tube: v.verdict for v in mine if v.tube is not None}
        of_box = {v.box: v.verdict for v in mine if v.box is not None}
        said = [
            of_box.get(box) or of_tube.get(owner) or ""
            for box, owner in table.select("box", "tube").iter_rows()
        ]
        judged = table.with_columns(said=pl.Series(said, dtype=pl.String))
        sure = pl.col("said").is_in(["right", "wrong"])
        image = ["video", "frame"]
        looked = judged.filter(pl.col("said") != "").select(image).unique()
        images = judged.join(looked, on=image, how="semi").group_by(image).agg(done=sure.all())
        left["images with boxes that are not judged"] += int((~images["done"]).sum())
        done = images.filter("done").sort(image)
        kept = judged.filter(pl.col("said") == "right").join(done, on=image, how="semi")
        empty = done.join(kept, on=image, how="anti").select(image)
        rows = pl.concat([kept.rename({"box": "proposal"}), empty], how="diagonal")
        rows = rows.with_columns(pl.lit(annotator).alias("annotator"), pl.lit(None, pl.String).alias("label"))
        parts.append(rows.select(pl.col(name).cast(dtype) for name, dtype in DRAWN.items()))
    return pl.concat(parts).sort("video", "frame", "annotator", maintain_order=True), {
        what: count for what, count in left.items() if count
    }


_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_CHUNK = 1 << 18
_MOST_NUMBER = 1 << 40
_FILM_TYPES = {".webm": "video/webm"}
_FORGED = (pl.exceptions.PolarsError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_LOG = logging.getLogger("roadaware")
Endpoint = Callable[[Request], Response]


def create_app(opened: Opened, annotator: str) -> Starlette:
    """The application; `guard.Guard` stands before it.

    No part of an address is ever a path: modules are looked up in a dictionary of what this package holds, videos
    are numbers.

    Args:
        opened: what is looked at.
        annotator: who judges.
    """
    pages = _Pages(opened, annotator)
    read = [Route(path, _answer_errors(end)) for path, end in pages.endpoints().items()]
    changes = {
        "/api/verdicts": pages.write_verdict,
        "/api/clips": pages.start_clip,
        "/api/clips/cancel": pages.cancel_clip,
    }
    write = [Route(path, _take(end), methods=["POST"]) for path, end in changes.items()]
    app = Starlette(routes=[*read, *write])
    app.state.close, app.state.clips = pages.close, pages.clips
    return app


class _Pages:
    """The endpoints, on one index and one finder of films."""

    def __init__(self, opened: Opened, annotator: str) -> None:
        self._opened, self._annotator = opened, annotator
        self._index, self._films = Index(opened), FilmFinder(opened)
        self._overlays, self._waveforms = Overlays(opened, self._index), Waveforms()
        self.clips = ClipMaker(self._index, self._films, self._overlays)
        self._sweeps = Sweeps(opened)
        static = files("roadaware.viewer") / "static"
        self._static = {
            each.name: (each.read_bytes(), _TYPES[suffix])
            for each in static.iterdir()
            if (suffix := "." + each.name.rpartition(".")[2]) in _TYPES
        }

    def endpoints(self) -> dict[str, Endpoint]:
        """Path to endpoint, of those that change nothing."""
        return {
            "/": self.page,
            "/static/{name}": self.module,
            "/api/index": self.index,
            "/api/video": self.video,
            "/api/film": self.film_state,
            "/api/boxes": self.boxes,
            "/api/overlays": self.overlays,
            "/api/layers": self.layers,
            "/api/map": self.sound_map,
            "/api/latency": self.latency,
            "/api/waveform": self.waveform,
            "/api/counts": self.counts,
            "/api/errors": self.errors,
            "/api/items": self.items,
            "/api/findings": self.findings,
            "/api/columns": self.columns,
            "/api/count": self.count,
            "/api/differences": self.differences,
            "/api/metrics": self.metrics,
            "/api/curve": self.curve,
            "/api/verdicts": self.verdicts,
            "/api/corrections": self.corrections,
            "/api/clip": self.clip_state,
            "/clip/{key}": self.clip,
            "/film/{number}": self.film,
            "/still/{number}/{frame}": self.still,
            "/api/sweeps": self.sweeps,
            "/api/sweep": self.sweep,
            "/api/dropped": self.dropped,
            "/points/{number}/{frame}": self.points,
        }

    def page(self, request: Request) -> Response:
        """The one page."""
        return self._file("index.html")

    def module(self, request: Request) -> Response:
        """A module or a style of the page."""
        return self._file(request.path_params["name"])

    def _file(self, name: str) -> Response:
        if name not in self._static:
            raise HTTPException(404)
        data, kind = self._static[name]
        return Response(data, media_type=kind)

    def index(self, request: Request) -> Response:
        """What was opened."""
        return _json(
            {
                **self._index.describe(),
                "annotator": self._annotator,
                "space": self._sweeps.known,
                "runs": self._sweeps.describe_runs(),
            }
        )

    def video(self, request: Request) -> Response:
        """Tubes, events and what else there is of a video."""
        return _json(self._index.describe_video(self._video(request)))

    def film_state(self, request: Request) -> Response:
        """Whether the film of a video can be shown, and when each of its frames is."""
        film = self._films.film(self._video(request))
        return _json(
            {
                "state": film.state,
                "message": film.message,
                "done": round(film.done, 3),
                "drawn": film.drawn,
                "sound": film.sound,
                "width": film.width,
                "height": film.height,
                "times": [round(t_s, 6) for t_s in film.times_s] if film.state != "encoding" else [],
            }
        )

    def boxes(self, request: Request) -> Response:
        """The boxes of some frames."""
        first, end = _whole(request, "first"), _whole(request, "end")
        conditions = parse_conditions(_text(request, "where"))
        return _json(self._index.boxes(self._video(request), first, end, conditions))

    def overlays(self, request: Request) -> Response:
        """What stands beside the boxes of a video, and its sounds."""
        return _json(self._overlays.describe(self._video(request)))

    def layers(self, request: Request) -> Response:
        """Some layers of some frames."""
        first, end = _whole(request, "first"), _whole(request, "end")
        layers = _text(request, "layers").split(",")
        return _json(self._overlays.window(self._video(request), first, end, layers))

    def sound_map(self, request: Request) -> Response:
        """Where a sound comes from, as it is predicted."""
        side, sound = _text(request, "side"), _whole(request, "sound")
        return _json(self._overlays.sound_map(self._video(request), side, sound))

    def latency(self, request: Request) -> Response:
        """How long the frames of a watch took to be known."""
        first, end, bars = (_whole(request, name) for name in ("first", "end", "bars"))
        side = _text(request, "side")
        return _json(self._overlays.latency(self._video(request), side, first, end, bars))

    def waveform(self, request: Request) -> Response:
        """The waveform of a part of a film, on the clock of the file that is shown."""
        film = self._films.film(self._video(request))
        first_s, end_s = _number(request, "first"), _number(request, "end")
        bars = _whole(request, "bars")
        if film.path is None or film.state != "ready" or not film.sound:
            state = "reading" if film.state == "encoding" else "none"
            return _json({"state": state, "message": "", "done_s": 0, "low": [], "high": []})
        open_served(film.path)[0].close()  # refuses what was put in the film's place since
        return _json(self._waveforms.describe(film.path, first_s, end_s, bars))

    def counts(self, request: Request) -> Response:
        """How many boxes pass the filters; classes that do not are given one by one."""
        hidden = set(request.query_params.getlist("hide"))
        return _json(self._index.counts(_whole(request, "hundredth"), hidden))

    def errors(self, request: Request) -> Response:
        """Errors of tubes by what they cost."""
        side, kind, level = _text(request, "side"), _text(request, "kind"), _text(request, "level") or "video"
        return _json(self._index.errors(side, kind, _number(request, "threshold"), level))

    def items(self, request: Request) -> Response:
        """What stands behind a number of an evaluation that is not of road events."""
        number = _whole(request, "evaluation")
        return _json(self._index.items(number, _text(request, "metric"), _text(request, "label")))

    def findings(self, request: Request) -> Response:
        """Findings with the place that each names."""
        return _json(self._index.findings())

    def columns(self, request: Request) -> Response:
        """What boxes of a side can be filtered by."""
        return _json(self._index.columns(_text(request, "side")))

    def count(self, request: Request) -> Response:
        """How many boxes meet the conditions, by side and video."""
        return _json(self._index.count(parse_conditions(_text(request, "where"))))

    def differences(self, request: Request) -> Response:
        """Where two predictions differ: by video, or in the one that is named."""
        one, other, overlap = _text(request, "one"), _text(request, "other"), _number(request, "overlap")
        if "video" in request.query_params:
            return _json(self._index.list_differences(self._video(request), one, other, overlap))
        return _json(self._index.differences(one, other, overlap, _whole(request, "first")))

    def metrics(self, request: Request) -> Response:
        """The numbers of an evaluation."""
        return _json(self._index.metrics(_whole(request, "evaluation")))

    def curve(self, request: Request) -> Response:
        """Precision over recall of a class."""
        level, kind, label = (_text(request, name) for name in ("level", "kind", "label"))
        number = _whole(request, "evaluation")
        return _json(self._index.curve(number, level, kind, label, _number(request, "threshold")))

    def verdicts(self, request: Request) -> Response:
        """The verdicts that count, of everybody."""
        source = self._opened.sides.get(_text(request, "side"))
        if source is None or source.folder is None:
            return _json([])
        return _json([vars(verdict) for verdict in VerdictFile(source.folder, source.digest).read()])

    def start_clip(self, data: bytes) -> Response:
        """Begin with a clip."""
        try:
            given = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise UsageError("a clip is asked for in JSON") from error
        return _json({"clip": self.clips.start(parse_order(given, self._index))})

    def cancel_clip(self, data: bytes) -> Response:
        """Stop making a clip."""
        try:
            key = json.loads(data)["clip"]
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise UsageError("say which clip") from error
        self.clips.cancel(str(key))
        return _json({})

    def clip_state(self, request: Request) -> Response:
        """How far a clip is."""
        clip = self.clips.clip(_text(request, "clip"))
        record = {
            "state": clip.state,
            "message": clip.message,
            "done": round(clip.done, 3),
            "name": clip.name,
        }
        return _json(record)

    def clip(self, request: Request) -> Response:
        """The file of a clip."""
        clip = self.clips.clip(request.path_params["key"])
        if clip.state != "ready" or clip.path is None:
            raise HTTPException(404)
        file, size = open_served(clip.path)
        headers = {
            "content-length": str(size),
            "content-disposition": f'attachment; filename="{clip.name}"',
        }
        return StreamingResponse(_pieces(file, 0, size), 200, headers, TYPES[clip.order.form])

    def close(self) -> None:
        """Stop what is being made."""
        self.clips.close()

    def write_verdict(self, data: bytes) -> Response:
        """Write a verdict down."""
        try:
            given = json.loads(data)
            side = given.pop("side")
            verdict = Verdict(annotator=self._annotator, **given)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise UsageError("a verdict has side, video, tube or box, frame, verdict and note") from error
        _, file = self._judged(side)
        if verdict.video not in self._index.videos:
            raise UsageError("there is no such video")
        file.add(verdict)
        return _json([vars(each) for each in file.read()])

    def corrections(self, request: Request) -> Response:
        """The verdicts as corrected proposals, in Parquet."""
        source, file = self._judged(_text(request, "side"))
        rows, left = build_corrections(source, file.read())
        if rows.is_empty():
            why = "; ".join(f"{count} {what}" for what, count in left.items()) or "no verdict yet"
            raise InputError(f"there is nothing to export: {why}")
        buffer = io.BytesIO()
        rows.write_parquet(buffer)
        said = {"content-disposition": 'attachment; filename="corrections.parquet"'}
        return Response(buffer.getvalue(), media_type="application/octet-stream", headers=said)

    def film(self, request: Request) -> Response:
        """A film's file, or the part of it that is asked for."""
        film = self._films.film(self._index.video(_path_number(request, "number")))
        if film.path is None or film.state != "ready":
            raise HTTPException(404)
        file, size = open_served(film.path)
        kind = _FILM_TYPES.get(film.path.suffix.lower(), "video/mp4")
        # First byte, the one after the last, and the status; one range is answered, several as none.
        asked = request.headers.get("range")
        found = re.fullmatch(r"bytes=([0-9]{0,18})-([0-9]{0,18})", asked or "", re.ASCII)
        if found is None or found[0] == "bytes=-":
            first, end, status = 0, size, 200
        else:
            if not found[1]:
                first, end = max(0, size - int(found[2])), size
            else:
                first, end = int(found[1]), min(size, int(found[2]) + 1) if found[2] else size
            first, end, status = (first, end, 206) if first < end else (0, 0, 416)
        headers = {"accept-ranges": "bytes", "content-length": str(end - first)}
        if status == 416:
            file.close()
            return Response(status_code=416, headers={"content-range": f"bytes */{size}"})
        if status == 206:
            headers["content-range"] = f"bytes {first}-{end - 1}/{size}"
        return StreamingResponse(_pieces(file, first, end), status, headers, kind)

    def still(self, request: Request) -> Response:
        """An image of a video of stills."""
        video = self._index.video(_path_number(request, "number"))
        data, kind = self._films.still(video, _path_number(request, "frame"))
        return Response(data, media_type=kind)

    def sweeps(self, request: Request) -> Response:
        """Whether a video has sweeps, and whose clusters can be told."""
        return _json(self._sweeps.describe(self._video(request)))

    def sweep(self, request: Request) -> Response:
        """Boxes in space, clusters and objects of a frame."""
        return _json(
            self._sweeps.scene(self._video(request), _whole(request, "frame"), _text(request, "side"))
        )

    def dropped(self, request: Request) -> Response:
        """What a run of `propose` dropped, and at which step."""
        return _json(self._sweeps.dropped(_text(request, "side")))

    def points(self, request: Request) -> Response:
        """The points of a frame, as numbers."""
        video, frame = self._index.video(_path_number(request, "number")), _path_number(request, "frame")
        data = self._sweeps.points(video, frame, _text(request, "side"))
        return Response(data, media_type="application/octet-stream")

    def _video(self, request: Request) -> str:
        return self._index.video(_whole(request, "video"))

    def _judged(self, side: Any) -> tuple[TableSource, VerdictFile]:
        """A side and the file of its verdicts.

        Raises:
            UsageError: if there is no such side, or it is no folder that can be written to.
        """
        source = self._opened.sides.get(side) if isinstance(side, str) else None
        if source is None:
            raise UsageError("there is no such side")
        if source.folder is None:
            raise UsageError(
                "verdicts are kept in folders of roadaware: save the dataset with `roadaware read -o` first"
            )
        return source, VerdictFile(source.folder, source.digest)


def _take(endpoint: Callable[[bytes], Response]) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint of what changes something, with the body that was sent."""

    async def taken(request: Request) -> Response:
        data = b""
        async for part in request.stream():
            data += part
            if len(data) > 1 << 20:
                raise HTTPException(413)
        return await run_in_threadpool(_answer_errors(lambda _: endpoint(data)), request)

    return taken


def _answer_errors(endpoint: Endpoint) -> Endpoint:
    """The endpoint, with errors as JSON that the page shows; no traceback and no 500 for what was asked wrongly."""

    @wraps(endpoint)
    def guarded(request: Request) -> Response:
        try:
            return endpoint(request)
        except RoadawareError as error:
            status = 422 if isinstance(error, UsageError) else 507 if isinstance(error, DiskError) else 409
            return _json({"error": to_printable(str(error), 1000)}, status)
        except _FORGED as error:
            # The laws of tables are not checked when they are scanned: a forged one is met here.
            words = str(error).splitlines()[:1]
            message = f"a table is not as roadaware writes it ({type(error).__name__}): {' '.join(words)}"
            _LOG.debug("%s", message, exc_info=True)
            return _json({"error": to_printable(message, 1000)}, 409)
        except OSError as error:
            # Rows are read when they are asked for: a set that was removed, or written anew, has other files.
            message = f"a file is not there any more, or cannot be read ({error}): open the folder again"
            return _json({"error": to_printable(message, 1000)}, 409)

    return guarded


def _json(data: Any, status: int = 200) -> Response:
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text.encode("utf-8", errors="replace"), status, media_type="application/json")


def _text(request: Request, name: str) -> str:
    return request.query_params.get(name, "")


def _whole(request: Request, name: str) -> int:
    return _parse_whole(_text(request, name), name)


def _path_number(request: Request, name: str) -> int:
    return _parse_whole(request.path_params[name], name)


def _parse_whole(text: str, name: str) -> int:
    if not re.fullmatch("[0-9]{1,13}", text, re.ASCII) or int(text) > _MOST_NUMBER:
        raise UsageError(f"{name} is a whole number from 0 on")
    return int(text)


def _number(request: Request, name: str) -> float:
    text = _text(request, name)
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,9})?", text, re.ASCII):
        raise UsageError(f"{name} is a number")
    return float(text)


def _pieces(file: Any, first: int, end: int) -> Iterator[bytes]:
    with file:
        file.seek(first)
        left = end - first
        while left and (piece := file.read(min(_CHUNK, left))):
            left -= len(piece)
            yield piece
