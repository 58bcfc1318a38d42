"""Kernels that filter sound sample by sample."""

from __future__ import annotations

from typing import Any

from roadaware.geometry.compiled import kernel


@kernel
def apply_filter_sections(samples: Any, sections: Any, state: Any) -> None:
    """Send samples through the sections of a filter, one after the other (transposed direct form II).

    Args:
        samples: (m,) f64, changed.
        sections: (k, 6) f64 factors of what comes in and of what went out, of which the first is 1.
        state: (k, 2) f64 what is left of the samples before, changed.
    """
    for s in range(len(sections)):
        # A loop, since each sample needs the one before it; section by
        # section, so that two floats are all its state.
        row, left, older = sections[s], state[s, 0], state[s, 1]
        for n in range(len(samples)):
            new = samples[n]
            out = row[0] * new + left
            left, older = row[1] * new - row[4] * out + older, row[2] * new - row[5] * out
            samples[n] = out
        state[s, 0], state[s, 1] = left, older
