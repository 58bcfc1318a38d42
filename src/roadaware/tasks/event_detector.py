"""EventDetector: a detector of agents with the event head behind it, which answers as any detector does."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Pixels
from roadaware.errors import UsageError
from roadaware.linking.config import LinkerConfig
from roadaware.models.detector import Detector, FrameDetections
from roadaware.models.event_head.ego_motion import EgoMotion
from roadaware.models.event_head.head import EventHead
from roadaware.models.event_head.lamps import light_colours
from roadaware.models.videos import VideoDetector
from roadaware.tasks.event_labels import EventLabeller, Scene

_USUAL_FPS = 12.0


@dataclass(frozen=True, eq=False)
class _Held:
    """A picture that the detector has not answered yet."""

    number: int
    t_s: float
    picture: Pixels


class EventDetector:
    """Detections of another detector with scores of actions, locations, duplexes and events.

    It links detections itself, as whoever follows it will, and it finds the own motion in the pictures.
    Numbers and times of frames are those that `tell_moment` gives, else those of `fps`.

    Args:
        detector: of agents.
        head: that scores.
        linker: what is linked with; the same as makes tubes later.
        fps: pictures a second where nobody tells their times.
        focal_px: focal length of the camera; of a usual one where None.

    Raises:
        UsageError: if the detector tells no agents of ROAD.
    """

    def __init__(
        self,
        detector: Detector | VideoDetector,
        head: EventHead,
        linker: LinkerConfig,
        *,
        fps: float | None = None,
        focal_px: float | None = None,
    ) -> None:
        self.detector, self.fps = detector, fps or _USUAL_FPS
        self._labeller = EventLabeller(head, detector.kinds, linker, focal_px)
        self._ego = EgoMotion(focal_px)
        self.kinds: Mapping[str, tuple[str, ...]] = self._labeller.kinds
        self.av_labels: tuple[str, ...] = tuple(detector.av_labels) or self._labeller.av_labels
        self.delay = detector.delay
        self._moment: tuple[int, float] | None = None
        self._forget()

    single = False
    """How somebody moves is seen in pictures that follow each other."""

    def tell_moment(self, number: int, t_s: float) -> None:
        """Number and time of the picture that comes next, where a stream knows them.

        Args:
            number: counts frames, also those that did not arrive.
            t_s: in seconds, later than that of the picture before.
        """
        self._moment = (number, t_s)

    def set_rate(self, fps: float | None, linker: LinkerConfig | None = None) -> None:
        """Pictures a second of the next video, of which nobody tells times, and its linker.

        Args:
            fps: 12 where None.
            linker: the same as before where None.
        """
        self.fps = fps or _USUAL_FPS
        self._labeller.reset(linker)

    def reset(self) -> None:
        """Forget the stream: the next picture is frame 0 of another video."""
        self.detector.reset()
        self._forget()

    def step(self, picture: Pixels) -> list[FrameDetections]:
        """The frames that became known by one more picture.

        Raises:
            InputError: as the detector.
        """
        self._hold(picture)
        return [self._labelled(found) for found in self.detector.step(picture)]

    def finish(self) -> list[FrameDetections]:
        """The frames still owed; forgets the stream."""
        found = [self._labelled(each) for each in self.detector.finish()]
        self._forget()
        return found

    def detections(self, pictures: Iterable[Pixels], n_frames: int) -> Iterator[FrameDetections]:
        """What is found in all frames of a video, in order.

        Args:
            pictures: of the frames.
            n_frames: as many as there are.

        Raises:
            InputError: as the detector.
        """
        self._forget()

        def passed() -> Iterator[Pixels]:
            for picture in pictures:
                self._hold(picture)
                yield picture

        if not isinstance(self.detector, VideoDetector):
            raise UsageError("this detector looks at streams, not at whole videos")
        for found in self.detector.detections(passed(), n_frames):
            yield self._labelled(found)
        self._forget()

    def _forget(self) -> None:
        self._labeller.reset()
        self._ego.reset()
        self._held: deque[_Held] = deque()
        self._moment = None
        self._count = 0

    def _hold(self, picture: Pixels) -> None:
        number, t_s = self._moment or (self._count, self._count / self.fps)
        self._count, self._moment = number + 1, None
        self._held.append(_Held(number, t_s, picture))

    def _labelled(self, found: FrameDetections) -> FrameDetections:
        held = self._held.popleft()
        height, width = held.picture.shape[:2]
        motion = self._ego.step(held.picture, held.t_s, self._labeller.horizon)
        self._ego.leave_out(found.boxes[found.agentness >= 0.2])
        lights = self._lights(found, held.picture)
        return self._labeller.step(found, Scene(held.number, held.t_s, (width, height), motion, lights))

    def _lights(
        self, found: FrameDetections, picture: Pixels
    ) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        """(n, 4) colours of the boxes that may be traffic lights; zeros for all others."""
        agents: Sequence[str] = self.kinds["agent"]
        columns = [agents.index(name) for name in ("TL", "OthTL") if name in agents]
        colours = np.zeros((len(found), 4), np.float32)
        rows = np.flatnonzero(found.scores[:, columns].max(axis=1, initial=0) >= 0.1)
        colours[rows] = light_colours(picture, found.boxes[rows])
        return colours


def warm_up_events(linker: LinkerConfig) -> None:
    """Compile what the head and the own motion need, or load what an earlier process kept.

    Args:
        linker: as of `EventDetector`.
    """
    from roadaware.models.event_head.head import open_head

    rng = np.random.default_rng(0)
    picture = np.repeat(np.repeat(rng.integers(0, 255, (30, 40, 3), np.uint8), 8, axis=0), 8, axis=1)
    labeller, ego = EventLabeller(open_head(), {"agent": ("Car",)}, linker), EgoMotion()
    box, score = np.array([[9.0, 9.0, 60.0, 60.0]], np.float32), np.ones(1, np.float32)
    for frame in range(2):
        motion = ego.step(picture, frame / 10, labeller.horizon)
        found = FrameDetections(frame, box, score, score[:, None], np.zeros(0, np.float32))
        labeller.step(found, Scene(frame, frame / 10, (320, 240), motion))
