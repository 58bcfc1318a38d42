"""Forms in which annotation tools, trackers and trainers keep boxes: one file each, and one table of all."""
