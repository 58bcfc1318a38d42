"""Recipes, data and two loops that train: detectors on Lightning's Fabric, and predictors of pedestrians."""
