"""Why an interval is to be taken with caution, in words for people and files; imports nothing heavy."""

from __future__ import annotations

FEW, AT_END, LARGEST = "few units", "at its end", "a largest gap"
MEANINGS = {
    FEW: "over too few units for a 95 % interval to be relied on: fewer than 10, of overconfidence than 20",
    AT_END: "the value is an end of its own interval, which then says little of the other side",
    LARGEST: "of the largest of several gaps, which may be another's tomorrow: often too narrow",
}
"""What each caution says to a reader."""
ENOUGH, ENOUGH_SIGNED = 10, 20
"""Units from which on an interval is given without a caution; of a signed error, such as overconfidence."""
