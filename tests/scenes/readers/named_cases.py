"""What the numbered cases of every reader of XML share."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
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
    if each.frame is None:
        rest = without(clean, each.maker.VIDEO)
        for name, frame in unnumbered(rest).items():
            assert frame.equals(unnumbered(scenes)[name]), name
    else:
        lost = (pl.col("video").cast(pl.String) == each.maker.VIDEO) & (pl.col("frame") == each.frame)
        kept = unnumbered(clean)["boxes"].filter(~lost)
        assert 0 < len(kept) < len(clean.boxes)
        assert kept.equals(unnumbered(scenes)["boxes"])
    with pytest.raises(InputError, match=re.escape(each.main)) as caught:
        each.read(each.alone(root))
    assert re.search(reason, str(caught.value), re.DOTALL), caught.value
