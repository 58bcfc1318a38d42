"""Corner cases: from one LiDAR sweep and one picture to boxes around what nobody labelled."""
