"""What is known of the networks for pedestrians before torch is loaded: configs and cards."""
