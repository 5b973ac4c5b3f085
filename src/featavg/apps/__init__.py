"""What people start: the command line, the report, the playground."""
