"""Networks, and what they are made of: activations and losses."""
