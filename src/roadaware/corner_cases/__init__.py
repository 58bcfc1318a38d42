"""Corner cases: from one LiDAR sweep and one image to boxes around unlabelled objects."""
