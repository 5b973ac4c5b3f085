"""Training: rules, and the engine that runs them."""
