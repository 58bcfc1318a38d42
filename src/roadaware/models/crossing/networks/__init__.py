"""Networks that predict what a pedestrian will do; each module is one of them, or a family."""
