"""Why an interval is to be taken with caution, in words for people and files; imports nothing heavy."""

FEW, AT_END = "few units", "at its end"
MEANINGS = {
    FEW: "over fewer than 10 units: too few for a 95 % interval to be relied on",
    AT_END: "the value is an end of its own interval, which then says little of the other side",
}
"""What each caution says to a reader."""
ENOUGH = 10
"""Units from which on an interval is given without a caution."""
