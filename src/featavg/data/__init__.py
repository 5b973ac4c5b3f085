"""Laws and the samples they draw."""
