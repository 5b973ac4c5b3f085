"""The report: one web page of all runs."""
