"""Speed and memory of what the project promises, each measured as a user meets it."""
