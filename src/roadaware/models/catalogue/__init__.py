"""Trained models of others: a table of what there is, and how it comes into the cache folder; torch-free."""
