"""Training of networks that say what a pedestrian will do: recipes, losses, fits by seed, what comes out."""
