"""Training of the networks of crowds."""
