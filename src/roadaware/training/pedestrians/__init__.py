"""Training of pedestrian networks: recipes, losses, fits by seed, results."""
