"""`roadaware view`: runs and datasets on a local page, from the number to the frame."""

from __future__ import annotations

import getpass
import importlib.util
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from roadaware.cli import console
from roadaware.cli.options import Outcome, Several, validate_range
from roadaware.errors import UsageError

_PATHS = "Runs, saved tables or datasets, joints of `poses`, or a folder of such; what an evaluation judged stands beside it."
_MEDIA = "Videos, or folders in which videos and images lie, where tables do not say."
_READER = "The reader of a dataset as it was released, such as jaad. [default: told by its content]"
_PORT = "The port to listen at. [default: a free one]"
_BROWSER = "Open the page in the browser."
_ANNOTATOR = "Whose verdicts these are. [default: your name on this machine]"


def view(
    *paths: Annotated[Path, Parameter(help=_PATHS)],
    media: Annotated[tuple[Path, ...], Parameter(help=_MEDIA), Several] = (),
    reader: Annotated[str | None, Parameter(help=_READER)] = None,
    port: Annotated[int, Parameter(help=_PORT, validator=validate_range(0, 65535), show_default=False)] = 0,
    browser: Annotated[bool, Parameter(help=_BROWSER, negative="--no-browser", show_default=False)] = True,
    annotator: Annotated[str | None, Parameter(help=_ANNOTATOR)] = None,
) -> Outcome:
    """Look at runs and datasets on a local page: video, tubes, time line, and the errors behind each number.

    Takes what `watch`, `predict`, `link`, `propose`, `label export`, `simulate` and `read -o` wrote, datasets,
    runs of `evaluate` with their ground truth and predictions, and what `audit --json`, `doctor --json` and
    `check -o` found; of a folder of such all that it holds. Several predictions stand beside each other. The page is
    served to this machine alone, until Ctrl-C; the address holds the key to it.

    For example:

        roadaware view runs/drive --media drive.mp4

        roadaware view runs/mine TRUTH runs/detections/predictions

        roadaware view JAAD --reader jaad audit.json
    """
    for library in ("starlette", "uvicorn"):
        if importlib.util.find_spec(library) is None:
            raise UsageError(f"{library} is not installed: pip install 'roadaware[viewer]'")
    from roadaware.viewer.opening import open_paths
    from roadaware.viewer.serve import Viewer, open_browser

    name = annotator or _user()
    if not 0 < len(name) <= 100:
        raise UsageError("--annotator is a name of up to 100 characters")
    opened = open_paths(paths, media, reader)
    viewer = Viewer(opened, port, name)

    def started() -> None:
        console.print_result(viewer.address, concealed=True)
        console.print_note("serving to this machine until Ctrl-C")
        if browser:
            open_browser(viewer.address)

    viewer.serve(started)
    return Outcome("", {"address": viewer.address})


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no name: a container without a list of users
        return "somebody"
