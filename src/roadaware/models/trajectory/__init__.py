"""Where people will be: motion models without a network, and a network that predicts a mixture of paths."""
