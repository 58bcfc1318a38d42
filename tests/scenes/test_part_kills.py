"""Work in parts whose workers or driver are killed comes to the same bytes when it is given again."""

import pytest
from benchmarks.kill_parts import measure


@pytest.mark.slow
def test_killed_workers_and_drivers_change_no_byte() -> None:
    # `python -m benchmarks.kill_parts` gives fifty and twenty.
    workers, driver = measure("local", None, 6, 6, count=80)
    assert (workers["kills"], driver["kills"]) == (6, 6)
    for row in (workers, driver):
        assert row["finished_with_equal_bytes"] == row["runs"] > 0
        assert row["orphans"] == 0
