"""One loop for every task that trains: data, recipes, checkpoints and resume, on Lightning."""
