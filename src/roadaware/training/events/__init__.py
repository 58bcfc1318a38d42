"""Training of the event head: simulated scenes of many cameras, errors of detectors, and the fit."""
