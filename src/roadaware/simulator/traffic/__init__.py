"""Traffic: vehicles, cyclists, the own vehicle and traffic lights, lived frame by frame."""
