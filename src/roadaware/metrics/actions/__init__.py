"""Actions: boxes with several scored labels each, judged frame by frame; mean average precision."""
