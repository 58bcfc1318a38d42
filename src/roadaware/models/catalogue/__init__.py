"""Catalogue of trained models of others, and their download into the cache folder; torch-free."""
