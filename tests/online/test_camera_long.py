"""A camera that goes away and comes back all day: nothing of it piles up."""

from __future__ import annotations

import threading
import time

import psutil
import pytest
from unsteady_camera import Unhurried, unsteady_camera

from roadaware import addresses


@pytest.mark.slow
def test_nothing_grows_with_the_number_of_reconnections() -> None:
    """100,000 frames are for `python -m benchmarks --only online_camera`."""
    process, marks = psutil.Process(), []
    with unsteady_camera() as url:
        source, taken, last = Unhurried(url), 0, -1
        while taken < 12_000:
            frame = source.next(0.0, 5.0)
            if frame is None:
                assert source.ending is None
                continue
            taken += 1
            assert frame.number > last
            last = frame.number
            source.outcomes.news()
            if taken % 4000 == 0:
                held = (process.memory_info().rss / 1e6, process.num_fds(), threading.active_count())
                marks.append((*held, len(addresses._secrets)))
        counts = source.outcomes.counts()
        source.close()
    assert counts["reconnected"] > 20
    assert "dropped" not in counts
    assert marks[-1][0] - marks[0][0] < 20
    assert marks[-1][1] - marks[0][1] <= 6
    assert marks[-1][2] - marks[0][2] <= 2
    assert marks[-1][3] == marks[0][3]
    time.sleep(0.5)
    assert not [thread for thread in threading.enumerate() if thread.name in ("camera", "rtsp relay")]
