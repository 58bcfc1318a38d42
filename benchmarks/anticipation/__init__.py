"""Event anticipation: what is expected of tubes some seconds ahead, against what then happens."""
