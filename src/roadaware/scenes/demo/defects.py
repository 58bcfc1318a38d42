"""The defects that the demo's audit must find, planted into tracks that are otherwise sound."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roadaware.scenes.demo.walkers import Drive, Walker, crosser

Cast = Sequence[tuple[str, Drive, list[Walker]]]

N_WITHOUT_EVENT, N_LATE_EVENT, N_CONTRADICTIONS, N_GAPS = 14, 8, 4, 3
_LATE_FRAMES, _GAP_FRAMES = 55, 3


def plant(rng: np.random.Generator, cast: Cast) -> dict[str, tuple[str, ...]]:
    """Change some of the walkers; kind of defect to the names of those that have it.

    Args:
        rng: where chance comes from.
        cast: name, car and walkers of each video; the lists are changed in place.
    """
    places = [(video, index) for video, (_, _, walkers) in enumerate(cast) for index in range(len(walkers))]
    order = [places[k] for k in rng.permutation(len(places))]

    def of(video: int, index: int) -> Walker:
        return cast[video][2][index]

    crossers = [place for place in order if of(*place).crossing == 1]
    refusers = [place for place in order if of(*place).crossing == 0 and of(*place).behaviour]
    others = [place for place in order if not of(*place).behaviour]
    planted = {
        "crossing_without_event": crossers[:N_WITHOUT_EVENT],
        "late_event": crossers[N_WITHOUT_EVENT : N_WITHOUT_EVENT + N_LATE_EVENT],
        "attribute_contradiction": refusers[:N_CONTRADICTIONS],
        "track_gap": others[:N_GAPS],
        "duplicated_box": others[N_GAPS : N_GAPS + 1],
        "inverted_box": others[N_GAPS + 1 : N_GAPS + 2],
    }
    for video, index in planted["crossing_without_event"]:
        cast[video][2][index] = _without_event(rng, of(video, index).name, cast[video][1])
    for kind, change in _CHANGES.items():
        for place in planted[kind]:
            change(of(*place))
    return {kind: tuple(sorted(of(*place).name for place in found)) for kind, found in planted.items()}


def _without_event(rng: np.random.Generator, name: str, car: Drive) -> Walker:
    """Somebody who is crossing from the start; where the crossing began is not annotated."""
    while True:
        walker = crosser(rng, name, car, start_after=5)
        if len(walker.frames) >= 130:
            walker.crossing_point = -1
            return walker


def _late_event(walker: Walker) -> None:
    """The tags say that the crossing began well before the annotated event."""
    walker.crosses |= walker.frames >= walker.crossing_point - _LATE_FRAMES


def _contradict(walker: Walker) -> None:
    """The attribute says that the pedestrian does not cross, the tags that they do."""
    walker.crosses[-40:] = True


def _gap(walker: Walker) -> None:
    """Some frames in the middle have no box."""
    _keep(walker, np.delete(np.arange(len(walker.frames)), slice(60, 60 + _GAP_FRAMES)))


def _duplicate(walker: Walker) -> None:
    """One box stands twice."""
    _keep(walker, np.insert(np.arange(len(walker.frames)), 40, 40))


def _invert(walker: Walker) -> None:
    """The last box has its left edge right of its right edge."""
    walker.boxes[-1] = walker.boxes[-1][[2, 1, 0, 3]]


def _keep(walker: Walker, index: np.ndarray) -> None:
    for name in ("frames", "boxes", "crosses", "walking", "looking"):
        setattr(walker, name, getattr(walker, name)[index])


_CHANGES = {
    "late_event": _late_event,
    "attribute_contradiction": _contradict,
    "track_gap": _gap,
    "duplicated_box": _duplicate,
    "inverted_box": _invert,
}
