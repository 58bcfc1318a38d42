"""The event head: its teaching set, its training, and what its tables are measured by."""
