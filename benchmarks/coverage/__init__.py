"""How often 95 % intervals hold a truth that is known: simulated sets of every kind of number."""
