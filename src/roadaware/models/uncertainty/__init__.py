"""Doubt: wrappers that let any network for pedestrians say how far it trusts its own answer."""

from __future__ import annotations
