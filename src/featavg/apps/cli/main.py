"""The command line of featavg."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from featavg import __version__
from featavg.apps.cli import audit, certify, data, experiments, report, sweep
from featavg.apps.cli.terminal import BAD_INPUT, INTERRUPTED, OK, PIPE_CLOSED, Parser, complain
from featavg.apps.cli.warned import printed_warnings
from featavg.apps.play import launch
from featavg.errors import InputError, optional_imports

_COMMANDS = (experiments, report, audit, certify, data, sweep, launch)


def build_parser() -> Parser:
    """Return the parser of all commands."""
    parser = Parser(
        prog="featavg",
        description="A laboratory for feature averaging: the paper's experiments and your own.",
        epilog="Start with 'featavg reproduce --quick', then look into the folder 'runs'.",
    )
    parser.add_argument("--version", action="version", version=f"featavg {__version__}")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    for module in _COMMANDS:
        module.add_parsers(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = argparse.Namespace()
    try:
        try:
            code = _run(arguments, options)
        except SystemExit:  # by which argparse ends after help and versions
            sys.stdout.flush()
            raise
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader of the output has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except KeyboardInterrupt:
        complain(f"interrupted{getattr(options, 'if_interrupted', '')}.")
        return INTERRUPTED
    except (InputError, ModuleNotFoundError, OSError, MemoryError) as error:
        complain(_sentence(error))
        return BAD_INPUT


def _run(arguments: Sequence[str] | None, options: argparse.Namespace) -> int:
    """Run a command; `options` are filled in, so that they are known if it is interrupted."""
    parser = build_parser()
    _, unknown = parser.parse_known_args(arguments, options)
    if unknown:
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if options.command is None:
        parser.print_help()
        return OK
    with optional_imports("this"), printed_warnings():
        code: int = options.command(options)
    return code


def _sentence(error: Exception) -> str:
    """Return an error for which the user, not the program, can do something, as one sentence."""
    if isinstance(error, OSError):
        where = f" {error.filename!r}" if error.filename else ""
        return f"cannot read or write{where}: {error.strerror}."
    if isinstance(error, MemoryError):
        return "this needs more memory than the machine has."
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        name = error.name.partition(".")[0]
        if name == "featavg":
            raise error  # a fault of the program
        return f"this needs the package {name}, which is not installed."
    return str(error)
