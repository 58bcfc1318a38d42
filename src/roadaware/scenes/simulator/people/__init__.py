"""People: bodies that stand, walk, ride and act."""
