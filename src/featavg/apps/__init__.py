"""The applications: command line, report, audit page and playground."""
