"""A local page over runs and datasets: from a number to the frame that explains it."""
