"""The event head: actions and locations of any detector's tubes from their geometry, without torch."""
