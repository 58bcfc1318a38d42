"""Work in parts whose workers or driver are killed comes to the same bytes when it is given again."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from benchmarks import kill_parts
from benchmarks.kill_parts import Driver, measure

_SERVER = """
import time
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
server.start()
print("at", *server.get_host_and_port(), flush=True)
time.sleep(1200)
"""


_HANGS = """
import sys, time
from pathlib import Path
def wait_for_ever():
    Path(sys.argv[1], "worker").write_text("")
    time.sleep(600)
wait_for_ever()
"""


def test_a_slow_driver_is_waited_for_and_one_that_hangs_is_named_and_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = tmp_path / "marks"
    driver = Driver([sys.executable, "-S", "-X", "faulthandler", "-c", _HANGS, str(marks)], os.environ, marks)
    while not (marks / "worker").is_file():
        assert driver.wait(0.02) is None
    began_s = time.time()
    os.utime(marks / "worker", (began_s + 3600, began_s + 3600))
    monkeypatch.setattr(kill_parts, "_PATIENCE_S", 0.0)
    assert driver.poll() is None  # a part was begun
    os.utime(marks / "worker", (0, 0))
    with pytest.raises(AssertionError, match=r"(?s)no part was begun for 0 s.*in wait_for_ever"):
        driver.wait()
    assert driver.process.returncode is not None


@pytest.mark.slow
def test_killed_workers_and_drivers_change_no_byte() -> None:
    # `python -m benchmarks.kill_parts` gives fifty and twenty.
    workers, driver = measure("local", None, 6, 6, count=80)
    assert (workers["kills"], driver["kills"]) == (6, 6)
    for row in (workers, driver):
        assert row["finished_with_equal_bytes"] == row["runs"] > 0
        assert row["orphans"] == 0


@pytest.mark.slow
def test_workers_that_put_into_a_store_are_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    s3fs = pytest.importorskip("s3fs")
    pytest.importorskip("moto.server")
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert server.stdout is not None
        # The server prints lines of its own, too.
        host, port = next(line.split()[1:] for line in server.stdout if line.startswith("at "))
        names = {"AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_DEFAULT_REGION": "us-east-1"}
        for name, value in {**names, "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("ROADAWARE_HOME", os.environ.get("ROADAWARE_HOME", ""))  # `measure` sets it
        s3fs.S3FileSystem(skip_instance_cache=True).mkdir("bucket")
        for row in measure("local", "s3://bucket/kills", 3, 3, count=40):
            assert row["kills"] == 3
            assert row["finished_with_equal_bytes"] == row["runs"] > 0
            assert row["orphans"] == 0
    finally:
        server.kill()
        server.wait()
