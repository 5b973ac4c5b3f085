"""The parser, the console and the exit codes that all commands share."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import sys
import unicodedata
from decimal import Decimal
from typing import Any, NoReturn

from rich.console import Console
from rich.text import Text

from featavg.errors import did_you_mean
from featavg.files import to_json

_CONTROLS = ("Cc", "Cf", "Cs", "Zl", "Zp")  # categories of Unicode
_MOST_DIGITS = 300  # of a whole number
OK, NOT_REPRODUCED, BAD_INPUT, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141


class Parser(argparse.ArgumentParser):
    """A parser that reports bad input in one sentence."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)
        self.set_defaults(parser=self)  # that of the innermost command, for errors

    def error(self, message: str) -> NoReturn:
        """Print one sentence that names the command to get help from, and exit."""
        sentence = message[:1].lower() + message[1:].rstrip(".") + self._meant(message)
        self.exit(BAD_INPUT, f"featavg: {printable(sentence)}; see '{self.prog} --help'.\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help or a version; argparse itself says nothing of a disk that is full."""
        if file is sys.stdout:
            file.write(message)
        else:
            super()._print_message(message, file)

    def _meant(self, message: str) -> str:
        """Return the command, value or flag that was probably meant, as an aside."""
        if choice := re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message):
            return did_you_mean(choice[1], [name.strip(" '") for name in choice[2].split(",")])
        if flag := re.match(r"unrecognized arguments: (--[\w-]+)", message):
            return did_you_mean(flag[1], self._option_string_actions)
        return ""


def whole_number(text: str) -> int:
    """Return a whole number that may be written as 1e3.

    Examples
    --------
    >>> whole_number("1e3"), whole_number("1_000")
    (1000, 1000)
    """
    try:
        number = Decimal(text.strip())
        if number.adjusted() < _MOST_DIGITS and number == number.to_integral_value():
            return int(number)
    except ArithmeticError:
        pass
    raise argparse.ArgumentTypeError(f"must be a whole number, such as 1000 or 1e3; got {text!r}")


class Terminal(Console):
    """A console as wide as the terminal, or 120 characters where output goes to a pipe or file."""

    def __init__(self) -> None:
        super().__init__(width=None if sys.stdout.isatty() else 120)

    def on_broken_pipe(self) -> None:
        """Leave a closed pipe to `featavg.apps.cli.main.main`."""
        raise BrokenPipeError

    def render_str(self, text: str, **options: Any) -> Text:
        """Return text, also that of a cell, without the control characters that it may have."""
        lines = [printable(line) for line in text.split("\n")]
        return super().render_str("\n".join(lines), **options)

    def print_plain(self, text: str) -> None:
        """Print a line as it is: a path or a sentence, without wrapping or markup."""
        self.print(text, soft_wrap=True, highlight=False, markup=False)


def printable(text: str) -> str:
    r"""Return text on one line, with escapes for what could control a terminal.

    File names, and what files hold, are not trusted.

    Examples
    --------
    >>> print(printable("naïve \x1b[31m√d\n"))
    naïve \x1b[31m√d\n
    """
    return "".join(
        c.encode("unicode_escape").decode() if unicodedata.category(c) in _CONTROLS else c
        for c in text
    )


def complain(sentence: str) -> None:
    """Print a sentence on standard error, unless that cannot be written to."""
    with contextlib.suppress(OSError):
        print(f"featavg: {printable(sentence)}", file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """Print a value as JSON, in ASCII where the terminal lacks some of its characters."""
    text = to_json(value).decode()
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(json.loads(text), indent=2) + "\n"
    print(text, end="")
