"""Results as plain data, and how they are drawn; `featavg.plot` is what users draw with."""
