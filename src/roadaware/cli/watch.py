"""`roadaware watch`: from a camera or a video to road events, as they happen."""

from __future__ import annotations

import contextlib
import logging
import math
import shlex
import shutil
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Self

from cyclopts import Parameter

from roadaware.addresses import holds_secret, mask_secrets
from roadaware.cli import console, outputs
from roadaware.cli.networks import (
    AS_IT_SUITS,
    Device,
    EventsOption,
    Looks,
    Precision,
    add_event_head,
    build_run_name,
    log_warmup,
    select_detector,
)
from roadaware.cli.options import MAY_STAND_ALONE, Outcome, Output, Overwrite, Stated, Switch
from roadaware.cli.results import format_view_command
from roadaware.errors import DiskError, InputError, RoadawareError, UsageError
from roadaware.io.interrupts import stop_gracefully
from roadaware.online import setup
from roadaware.online.cameras import Camera
from roadaware.online.crowd import StoppedError, check_crowd_source, open_crowd_questions, watch_crowd
from roadaware.online.frames import Ending, SystemClock
from roadaware.online.run_folder import PAGE, RunFolder, build_run_record, get_video_name, prepare
from roadaware.online.setup import apply_detector_advice, load_detector
from roadaware.online.sources import Realtime, open_source
from roadaware.online.watch import watch as run
from roadaware.online.watcher import warm_up_detector, warm_up_linker
from roadaware.reports.live_drawing import LiveDrawing, draw_crowd_film
from roadaware.reports.page import save
from roadaware.reports.watch_page import format_progress, format_watch, render_watch_page
from roadaware.scenes.dense_scores import Layout
from roadaware.simulator.synthetic_films import is_synthetic_film

if TYPE_CHECKING:
    from roadaware.models.detector import Detector
    from roadaware.online.config import WatchConfig
    from roadaware.online.crossing import CrossingAnnotator
    from roadaware.online.crowd import CrowdQuestions
    from roadaware.online.frames import Clock, Source
    from roadaware.online.run_folder import Drawing
    from roadaware.online.watch import Progress

_SOURCE = (
    "A video or GIF, a folder of images, a glob in quotes, the number of a camera (0), or an address "
    "(rtsp://, http://)."
)
_WEIGHTS = (
    "The detector: a name of `models list`, a file as `train` writes it (model.safetensors), or the folder "
    "of an object detector of transformers; given several times, networks of the same anchors are averaged. "
    "[default: of a real video the one of `models list` that is installed, else the bundled one: compact-road, and of people "
    "crowd-people with --crowd]"
)
_NAME = "Name of the stream in the tables. [default: that of its file]"
_OUT = "Folder of the run. [default: runs/watch-SOURCE]"
_FPS = "Images per second of a folder [default: 12]; of others, process no more frames a second than this."
_RECORDED = (
    "Frames per second at which a video was recorded, where it plays faster or slower than that, as a time "
    "lapse does. [default: the rate at which it plays]"
)
_BUDGET = "Of a camera, skip frames that would be answered later than this. [default: always the newest]"
_REALTIME = "Treat a video as a live camera: frames are lost to a detector that is too slow."
_THRESHOLD = (
    "Agentness of the three boxes that prove a tube, so that it is reported and drawn; it goes on with boxes of "
    "two thirds of it. [default: as the detector advises, or 0.2]"
)
_LABEL = (
    "Score at which a label begins to be reported; below two thirds of it, it no longer is. [default: 0.3, or the "
    "score that proves a tube where that is less]"
)
_IOU = "Overlap that a link of tubes needs. [default: as the detector advises, or 0.5]"
_THREADS = "Threads of the detector. [default: 1 for a small network, else as many as there are cores]"
_EXPECT = (
    "Say of each tube where it is expected in a second, and what it will do then: a dotted box on the video, `expected` in "
    "the events. Labels expected so were measured to be no better than those of now. [default: where there is an event head]"
)
_FOLLOW = (
    "Go where an http address redirects to, and to what an HLS playlist names; to another machine only if it "
    "is of the open net."
)
_RESCALE = "Scale images to the size of the first where a source changes it, instead of ending."


_CROSSING = (
    "Predictor of crossing or of risk, as `train` writes it (model.safetensors, or the folder of a run). "
    "Said again: one of the other question, or one to average with it. auto, also where nothing is said: "
    "those that came with roadaware. none: pedestrians are not asked about."
)
CrossingOption = Annotated[
    tuple[str, ...], Parameter(name="--crossing", help=_CROSSING, negative="", show_default=False)
]
_CROWD = (
    "Ask a network of crowds about the video, too: what people do, what one does to another, and what --find and --listen "
    "say. Its weights as `train intellicare` writes them (model.safetensors, or the folder of the run). [default, also of "
    "--crowd alone: the bundled network, where there is one]"
)
_FIND = (
    "A sentence: when does it happen, and where, such as 'a man in a red coat throws a stone'. Again for another one; "
    "implies --crowd."
)
_LISTEN = (
    "A sound that the network of crowds knows: when is it heard, and where does it come from. A first word stands for all "
    "kinds: siren for those of police and others. Again for another one; implies --crowd."
)


def watch(
    source: Annotated[str, Parameter(help=_SOURCE)],
    /,
    *,
    weights: Annotated[tuple[Path, ...], Parameter(help=_WEIGHTS, negative="", show_default=False)] = (),
    out: Annotated[Path | None, Output, Parameter(help=_OUT), outputs.WATCH] = None,
    name: Annotated[str | None, Parameter(help=_NAME)] = None,
    no_video: Annotated[
        bool, Parameter(help="Write no annotated video.", negative="", show_default=False)
    ] = False,
    fps: Annotated[float | None, Parameter(help=_FPS)] = None,
    recorded_fps: Annotated[float | None, Parameter(help=_RECORDED)] = None,
    budget_ms: Annotated[float | None, Parameter(help=_BUDGET)] = None,
    realtime: Annotated[bool, Parameter(help=_REALTIME), Switch] = False,
    seconds: Annotated[float | None, Parameter(help="Stop after this much of the stream.")] = None,
    threshold: Annotated[float | None, Parameter(help=_THRESHOLD)] = None,
    label_threshold: Annotated[float | None, Parameter(help=_LABEL)] = None,
    iou: Annotated[float | None, Parameter(help=_IOU)] = None,
    crossing: CrossingOption = (),
    crowd: Annotated[
        tuple[Path, ...] | None,
        Parameter(help=_CROWD, negative="", consume_multiple=True, show_default=False),
        MAY_STAND_ALONE,
    ] = None,
    find: Annotated[tuple[str, ...], Parameter(help=_FIND, negative="", show_default=False)] = (),
    listen: Annotated[tuple[str, ...], Parameter(help=_LISTEN, negative="", show_default=False)] = (),
    looks: Looks = AS_IT_SUITS,
    events: EventsOption = None,
    expect: Annotated[
        bool | None, Parameter(help=_EXPECT, negative="--no-expect", show_default=False)
    ] = None,
    threads: Annotated[int, Parameter(help=_THREADS), Stated] = 0,
    device: Device = "auto",
    precision: Precision = "fp32",
    rescale: Annotated[bool, Parameter(help=_RESCALE), Switch] = False,
    follow: Annotated[bool, Parameter(help=_FOLLOW), Switch] = False,
    overwrite: Overwrite = False,
) -> Outcome:
    """Watch a video or a camera: agents, what they do and where, as tubes, and what the own vehicle does.

    Writes events.jsonl as things happen, and at the end the tables `evaluate` takes (predictions/), a video
    with the sound of the source (video.mp4), a page (report.html) and summary.json. Ctrl-C ends it with all
    saved. Each pedestrian is given a probability of crossing and a region of risk (crossing.parquet).

    With --crowd a video is looked at a second time by a network of crowds, once its tubes are known: who does what to
    whom, when a sentence happens, where a sound comes from. `evaluate actions`, `relations`, `grounding` and `sound` take
    what it writes (crowd/actions, ...); the video, the page and the end of the command say it.

    For example:

        roadaware watch drive.mp4 --output runs/drive

        roadaware watch rtsp://camera/1 --budget-ms 200 --seconds 600 --no-video --output runs/camera

        roadaware watch square.mp4 --crowd runs/intellicare --find "a woman waves a flag" --listen siren
    """
    config = setup.build_watch_config(
        fps=fps,
        recorded_fps=recorded_fps,
        budget_ms=budget_ms,
        seconds=seconds,
        threshold=threshold,
        label_threshold=label_threshold,
        rescale=rescale,
        spell=lambda name: f"--{name.replace('_', '-')}",
    )
    if iou is not None and not 0 <= iou < 1:
        raise UsageError(f"--iou is an overlap from 0 up to 1, not {iou:g}")
    if threads < 0:
        raise UsageError(f"--threads is 1 or more, or 0 for what suits the detector, not {threads}")
    if name is not None and not name.strip():
        raise UsageError("--name is empty; leave it out for the name of the file")
    for option, given in (("--name", name), ("--out", out)):
        if given is not None and holds_secret(str(given)):
            raise UsageError(f"{option} holds a secret of the address; choose another")
    clock = SystemClock()
    with closing(open_source(source, fps, clock=clock, follow=follow, recorded_fps=recorded_fps)) as opened:
        folder = out or Path("runs") / f"watch-{build_run_name(get_video_name(opened), 'source')}"
        outputs.WATCH.check(folder, overwrite=overwrite)
        questions = open_questions(crowd, find, listen, opened)
        synthetic = not weights and is_synthetic_film(opened.path)
        # Sounds alone ask nothing of people, so that what looks at roads goes on.
        people = crowd is not None or bool(find)
        choice = select_detector(weights, synthetic=synthetic, live=opened.live, looks=looks, crowd=people)
        if people and not weights and choice.files == [setup.WEIGHTS / setup.PEOPLE_OF_CROWDS]:
            # Who asks about a crowd alone is not told what its people do as road users, unless that is asked for, too.
            events, expect, crossing = bool(events), bool(expect), crossing or ("none",)
            console.print_note(_PEOPLE_ALONE)
        detector = load_detector(choice.files, device, precision, threads, choice.views)
        config, said = apply_detector_advice(config, choice.files, iou, threshold)
        if label_threshold is None:  # whoever is told of has a name
            config = setup.lower_label_threshold(config)
        notice = setup.describe_training(choice.files, opened.path)
        for words in said:
            console.print_note(words)
        if notice:
            console.print_warning(notice)
        linker = config.linker_at(opened.fps)
        detector = add_event_head(events, detector, linker, opened.fps, expect)
        annotator = build_annotator(crossing, detector, clock, waits=not (opened.live or realtime))
        models = setup.describe_models(choice.files, annotator, choice.views, detector)
        if questions is not None:
            models.append(questions.describe())
        # A folder of images must not be written into, nor the watched file be replaced.
        if opened.path is not None and Path(opened.path).resolve().is_relative_to(folder.resolve()):
            raise UsageError(f"{folder} holds the source; name another folder with --output")
        asked = None if questions is None else questions.to_record()
        record = build_run_record(opened, config, name, models, asked)
        prepare(folder, overwrite=overwrite, record=record)
        with log_warmup("detector and linker"):
            warm_up_detector(detector)
            warm_up_linker(linker, Layout(dict(detector.kinds)))
        if isinstance(opened, Camera):
            opened.refresh()  # what nobody read of it while everything warmed up is stale, or it has hung up
        shown = Realtime(opened, clock) if realtime and not opened.live else opened
        draw = None if no_video else LiveDrawing(detector.kinds.get("agent", ()), notice)
        found = watch_source(
            shown, detector, config, folder, clock, draw, name, annotator, notice, models, questions
        )
    look = format_view_command(folder)
    if opened.path is not None:  # the original, on which the viewer draws what was found
        look += f" --media {shlex.quote(str(opened.path))}"
    return Outcome(format_watch(found, folder), {"folder": str(folder), **found}, look=look)


def open_questions(
    crowd: Sequence[Path] | None, find: Sequence[str], listen: Sequence[str], source: Source
) -> CrowdQuestions | None:
    """What a network of crowds is asked in a watch; None where none is.

    Args:
        crowd: as of `--crowd`: None where it is not given, empty where it stands alone.
        find: as of `--find`.
        listen: as of `--listen`.
        source: that is watched.

    Raises:
        UsageError: if the source cannot be looked at twice, or as of `open_crowd_questions`.
        InputError: if the weights cannot be read, or are of another kind.
    """
    if crowd is None and not find and not listen:
        return None
    named = list(crowd or ())
    if len(named) > 1:
        raise UsageError(f"--crowd takes the weights of one network, not {len(named)}")
    check_crowd_source(source)
    with console.log_step("opening the network of crowds"):
        return open_crowd_questions(named[0] if named else None, find, listen)


def build_annotator(
    asked: Sequence[str], detector: Detector, clock: Clock, *, waits: bool = True
) -> CrossingAnnotator | None:
    """What gives pedestrians their outlook in one watch, see `online.setup`, which needs torch."""
    with console.log_step("opening the predictors"):
        return setup.build_annotator(asked, detector, clock, waits=waits, timed=log_warmup)


def watch_source(
    source: Source,
    detector: Detector,
    config: WatchConfig,
    folder: Path,
    clock: Clock,
    draw: Drawing | None,
    video: str | None = None,
    annotator: CrossingAnnotator | None = None,
    notice: str = "",
    models: Sequence[Mapping[str, str]] | None = None,
    questions: CrowdQuestions | None = None,
) -> dict[str, Any]:
    """Watch a source to its end, as the command does.

    Args:
        source: that is watched; is not closed.
        detector: that looks.
        config: of the watch.
        folder: made by `prepare`.
        clock: of the source too.
        draw: makes a frame of the video; None for no video.
        video: what the tables call it; the name of its file where None.
        annotator: says who may cross; of this watch alone.
        notice: what the summary's readers should know of the detector.
        models: that are asked, for summary and page; None for no page.
        questions: what a network of crowds is asked once the watch is through; None for none.

    Returns:
        What came of it, as in the summary.

    Raises:
        KeyboardInterrupt, Terminated: if it was stopped; everything is saved.
        InputError: if the source failed before its end; everything until then is saved.
        DiskError: if something could not be written; all else is saved.
    """
    with stop_gracefully() as asked, LiveLine(source, config.seconds) as line:
        record = None if questions is None else questions.to_record()
        kept = RunFolder(
            folder, source, detector, config, clock, draw, video, annotator, notice, models or (), record
        )
        more: dict[str, Any] = {"stopped": asked, "tick": line.show}
        more["annotators"] = [] if annotator is None else [annotator]
        done = run(source, detector, config, kept, clock=clock, **more)
        line.close()
        # Before the summary: a watch that is killed while the network looks is begun anew.
        answers = None if questions is None else ask_crowd(questions, source, config, folder, done, asked)
        found = kept.summarise(done, None if models is None else partial(write_page, folder), answers)
    if asked():
        console.print_note(format_watch(found, folder))
        asked.end()
    if done.ending is not None and not done.ending.whole:
        saved = f"what was seen until then is saved in {folder}: {', '.join(kept.files)}"
        if done.ending.reason == "disk":
            raise DiskError(f"{done.ending.message}\n  {saved}")
        raise InputError(done.ending.message, hint=saved)
    return found


def ask_crowd(
    questions: CrowdQuestions,
    source: Source,
    config: WatchConfig,
    folder: Path,
    done: Progress,
    stopped: Callable[[], bool],
) -> dict[str, Any]:
    """Ask a network of crowds about what was watched, and draw on the video what it found.

    What goes wrong is no fault of the watch: it is complained of, and said in the summary. A full disk ends it, as it
    ends a watch.

    Args:
        questions: and the network.
        source: that was watched.
        config: of the watch.
        folder: of the watch, whose tables are complete.
        done: how far the watch came.
        stopped: asked whether to stop.

    Returns:
        What was found, for the summary; `says` alone where nothing could be asked.
    """
    if stopped() or done.ending is None or done.ending.reason in ("disk", "failed") or done.size is None:
        return {"says": [f"{_NOT_ASKED}: the watch ended before its end."]}
    try:
        with console.show_progress("the network of crowds") as progress:
            found = watch_crowd(
                questions,
                folder,
                check_crowd_source(source),
                frames=done.last_number + 1,
                min_score=config.begin_score * config.keep_share,
                stopped=stopped,
                progress=progress,
            )
        heard = Path(str(source.path)) if config.recorded_fps is None else None
        with console.show_progress("drawing what was found") as progress:
            draw_crowd_film(
                folder,
                found,
                fps=source.fps,
                width_px=done.size[1],
                sound=heard,
                start_s=source.start_s,
                progress=progress,
            )
    except StoppedError:
        return {"says": [f"{_NOT_ASKED}: it was stopped."]}
    except DiskError as error:
        done.ending = Ending("disk", f"the network of crowds: {error}")
        return {"says": [f"{_NOT_ASKED}: {str(error).splitlines()[0]}."]}
    except RoadawareError as error:
        console.print_error(f"the network of crowds: {error}")
        return {"says": [f"{_NOT_ASKED}: {str(error).splitlines()[0]}."]}
    return found


_PEOPLE_ALONE = (
    "looking for people with crowd-people; --weights chooses another detector, --events, --expect and --crossing auto "
    "add what road users are asked"
)
_NOT_ASKED = "The network of crowds has no answers"


def write_page(folder: Path, found: dict[str, Any]) -> bool:
    """Write the page into the folder of a watch that just ended; whether there is one.

    A page that cannot be made is no fault of the watch: it is complained of, and `report` makes it later.

    Args:
        folder: of the watch.
        found: its summary.
    """
    try:
        save(render_watch_page(folder, found), folder / PAGE)
    except RoadawareError as error:
        console.print_error(f"no page was made of the watch: {error}")
        return False
    return True


# The line that a watch shows while it runs: a bar on a terminal, and elsewhere nothing but under -v.

# On a terminal the line is written over; elsewhere each one stays.
_TERMINAL_S, _ELSEWHERE_S = 0.2, 5.0
_MARKS = 50


class LiveLine:
    """Shows how a watch goes.

    Args:
        source: that is watched.
        seconds: of the stream, after which the watch ends; None for all of it.
    """

    def __init__(self, source: Source, seconds: float | None = None) -> None:
        self._source, self._shown, self._seconds = source, False, seconds
        self._terminal = console.is_terminal()
        self._last_s = time.monotonic()
        # Rate and time left are those of the newest marks: a first frame may be slow, and a scene may fill.
        self._marks: deque[tuple[float, int, int]] = deque([(self._last_s, 0, -1)], maxlen=_MARKS)

    def __enter__(self) -> Self:
        logging.getLogger("roadaware").addFilter(self._clear)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        logging.getLogger("roadaware").removeFilter(self._clear)
        self.close()

    def show(self, progress: Progress) -> None:
        """Say how far it is, if it is time to.

        Args:
            progress: of the watch.
        """
        now_s = time.monotonic()
        if not (self._terminal or console.get_verbosity()):
            return
        if console.is_quiet() or now_s - self._last_s < (_TERMINAL_S if self._terminal else _ELSEWHERE_S):
            return
        self._last_s = now_s
        self._marks.append((now_s, progress.frames, progress.last_number))
        since_s, frames, number = self._marks[0]
        past_s = max(1e-3, now_s - since_s)
        fps, pace = (progress.frames - frames) / past_s, (progress.last_number - number) / past_s
        dropped = self._source.outcomes.counts().get("dropped", 0)
        words = format_progress(progress, fps, dropped, self._total(), pace)
        if not self._terminal:
            console.print_note(words)
            return
        width = max(20, shutil.get_terminal_size().columns - 1)
        self._write("\r\x1b[K" + words[:width])
        self._shown = True

    def _total(self) -> int | None:
        """Frames that will be gone through; None where nobody knows."""
        n_frames, fps = self._source.n_frames, self._source.fps
        if self._seconds is None or not fps:
            return n_frames
        asked = math.floor(self._seconds * fps) + 1
        return asked if n_frames is None else min(asked, n_frames)

    def close(self) -> None:
        """Take the line away."""
        if self._shown:
            self._write("\r\x1b[K")
            self._shown = False

    def _clear(self, record: logging.LogRecord) -> bool:
        """Make room for what is logged."""
        self.close()
        return True

    @staticmethod
    def _write(words: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(mask_secrets(words))
            sys.stderr.flush()
