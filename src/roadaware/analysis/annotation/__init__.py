"""People in the loop: what to look at, what became of proposals, and how far annotators agree."""

from __future__ import annotations
