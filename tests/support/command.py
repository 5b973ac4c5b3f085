"""The command line, called in this process."""

from __future__ import annotations

from featavg.apps.cli.main import main


def command(capsys, *arguments):
    """Return the exit code of `featavg ARGUMENTS`, and what it wrote to each stream."""
    try:
        code = main(list(arguments))
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err
