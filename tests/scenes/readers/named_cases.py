"""What the numbered cases of every reader of XML share."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sets import NativeSet, unnumbered, without

from roadaware.errors import InputError
from roadaware.scenes.tables import Scenes


def costs_the_video(each: NativeSet, root: Path, clean: Scenes, reason: str) -> None:
    """Among many the damaged file is refused, named and counted; alone it is an error."""
    found = each.refusal(root)
    assert re.search(reason, found, re.DOTALL), found
    if each.sole:
        return
    scenes = each.read(root)
    rest = without(clean, each.maker.VIDEO)
    for name, frame in unnumbered(rest).items():
        assert frame.equals(unnumbered(scenes)[name]), name
    with pytest.raises(InputError, match=re.escape(each.main)) as caught:
        each.read(each.alone(root))
    assert re.search(reason, str(caught.value), re.DOTALL), caught.value
