"""What experiments are made of: declarations, runs, sweeps."""
