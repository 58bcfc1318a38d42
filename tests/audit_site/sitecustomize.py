"""Loaded by every Python whose PYTHONPATH names this folder: notes what a process has no business to do.

`ROADAWARE_AUDIT` is a JSON object: `notes` (the file that breaches are added to, one line each), `reads` and
`writes` (beginnings of paths), `libraries` and `programs` (what may be loaded and started, by how the name
begins). Worker processes inherit the variable, and so the hook.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

_PLACES = {
    "os.remove": (0,),
    "os.rename": (0, 1),
    "os.mkdir": (0,),
    "os.rmdir": (0,),
    "os.link": (0, 1),
    "os.symlink": (1,),
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.truncate": (0,),
    "os.utime": (0,),
    "os.setxattr": (0,),
    "shutil.rmtree": (0,),
    "shutil.copyfile": (1,),
    "shutil.move": (0, 1),
    "shutil.make_archive": (0,),
    "shutil.unpack_archive": (1,),
    "tempfile.mkstemp": (0,),
    "tempfile.mkdtemp": (0,),
    "sqlite3.connect": (0,),
}
"""Events that change files, and which of their arguments are paths."""
_NEVER = (
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "os.forkpty",
    "os.startfile",
    "pty.spawn",
    "socket.connect",
    "socket.bind",
    "socket.sendto",
    "socket.sendmsg",
    "socket.getaddrinfo",
    "socket.gethostbyname",
    "socket.gethostbyaddr",
    "urllib.Request",
    "ftplib.connect",
    "http.client.connect",
    "smtplib.connect",
    "webbrowser.open",
    "cpython.run_interactivehook",
)


class Hook:
    """The audit hook.

    Args:
        asked: as `ROADAWARE_AUDIT` says.
    """

    def __init__(self, asked: dict[str, Any]) -> None:
        self._notes = os.open(asked["notes"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._writes = tuple(map(os.path.realpath, asked["writes"]))
        self._reads = (*map(os.path.realpath, asked["reads"]), *self._writes)
        self._libraries, self._programs = tuple(asked["libraries"]), tuple(asked["programs"])

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note the event where nothing allows it."""
        if not self._allows(event, arguments):
            shown = f"{event} {arguments!r}"[:500].replace("\n", " ")
            os.write(self._notes, f"{shown}\n".encode(errors="backslashreplace"))

    def _allows(self, event: str, arguments: tuple[Any, ...]) -> bool:
        if event == "open":
            return self._opens(arguments[0], arguments[1], arguments[2])
        if event in ("os.listdir", "os.scandir", "glob.glob"):
            return self._below(arguments[0] or ".", self._reads)
        if event == "ctypes.dlopen":
            return arguments[0] is None or str(arguments[0]).startswith(self._libraries)
        if event == "subprocess.Popen":
            return str(arguments[0]).startswith(self._programs)
        if event == "os.kill":
            # 0 asks whether there is such a process.
            return arguments[1] == 0 or _is_child(arguments[0])
        if event in _PLACES:
            return all(self._below(arguments[place], self._writes) for place in _PLACES[event])
        return not event.startswith(_NEVER)

    def _opens(self, path: Any, mode: Any, flags: Any) -> bool:
        if isinstance(path, int):
            return True
        writes = bool(set(mode) & set("wax+")) if isinstance(mode, str) else False
        writes |= isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC))
        return self._below(path, self._writes if writes else self._reads)

    def _below(self, path: Any, places: tuple[str, ...]) -> bool:
        if isinstance(path, int) or path is None:
            return True
        whole = os.path.realpath(os.fsdecode(path))
        return any(whole == place or whole.startswith(place.rstrip("/") + "/") for place in places)


def _is_child(process: int) -> bool:
    """Whether this process started that one, and may therefore end it."""
    try:
        said = Path(f"/proc/{process}/stat").read_text()
        return int(said.rpartition(")")[2].split()[1]) == os.getpid()
    except OSError:
        return False


if "ROADAWARE_AUDIT" in os.environ:
    sys.addaudithook(Hook(json.loads(os.environ["ROADAWARE_AUDIT"])))
