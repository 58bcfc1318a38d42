"""Models that predict what a pedestrian will do from the boxes observed so far."""
