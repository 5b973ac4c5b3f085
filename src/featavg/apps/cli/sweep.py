"""`featavg sweep`: run an experiment over a grid of its parameters."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from featavg import checks
from featavg.apps.cli.terminal import NOT_REPRODUCED, OK, print_json, printable, whole_number
from featavg.errors import InputError
from featavg.files import DamagedError
from featavg.lab import registry
from featavg.lab.experiment import Experiment
from featavg.lab.sweeps import Design, Store, SweepExperiment, sweep
from featavg.lab.sweeps.engine import require
from featavg.lab.sweeps.store import read_design
from featavg.lab.sweeps.values import Kinds

_DESCRIPTION = (
    "Run an experiment over a grid of its parameters, or over random draws, on all cores or on a "
    "Dask cluster. WHAT is a TOML file with a design, a phase diagram, or any experiment together "
    "with --vary: its id, or a Python file as for 'featavg run'. Finished runs are saved in "
    "batches of about two seconds; a sweep that was stopped in any way continues with the same "
    "command. 'featavg sweep status DIR' tells how many runs of a sweep are done; for an "
    "experiment in a file, name the file again: 'featavg sweep status DIR FILE.py'."
)
_EXAMPLES = (
    "Examples: featavg sweep averaging --vary learning_rate=1e-4:1:20:log --vary width=1,5,10 "
    "--seeds 3; featavg sweep design.toml --cluster tcp://127.0.0.1:8786; featavg sweep status "
    "sweeps/averaging. The exit code is 0 if every run is done, 1 if one failed."
)


def add_parsers(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "sweep",
        help="run an experiment over a grid of its parameters, on all cores or a cluster",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "what", nargs="+", metavar="WHAT", help="FILE or ID, or 'status DIR [FILE.py]'"
    )
    values = (
        "values with commas between them, or LOW:HIGH:COUNT, with :log for even logarithms (of a "
        "whole number: rounded, each once), or LOW:HIGH with --draws; NAME+NAME sets two "
        "parameters to the same value"
    )
    for flag, pair, text in (
        ("--vary", "NAME=VALUES", values),
        ("--set", "NAME=VALUE", "another parameter"),
    ):
        parser.add_argument(flag, action="append", default=[], metavar=pair, help=text)
    parser.add_argument("--quick", action="store_true", help="start from the quick parameters")
    parser.add_argument("--seeds", type=whole_number, metavar="N", help="how many seeds of each")
    parser.add_argument("--draws", type=whole_number, metavar="N", help="random draws, no grid")
    parser.add_argument(
        "--workers", type=whole_number, metavar="N", help="processes (default: all cores)"
    )
    parser.add_argument("--cluster", metavar="ADDRESS", help="of a Dask scheduler")
    parser.add_argument("--retry-failed", action="store_true", help="run again what failed")
    out = "the folder (default: sweeps/ID or sweeps/FILE)"
    parser.add_argument("--out", type=Path, metavar="DIR", help=out)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(
        command=run, if_interrupted="; finished runs are saved, and the same command continues"
    )


def run(options: argparse.Namespace) -> int:
    """Run a sweep, or print the status of one."""
    if options.what[0] == "status":
        return _status(options)
    if len(options.what) > 1:
        raise InputError(f"WHAT must be one file or id; got {' '.join(options.what)!r}.")
    what = options.what[0]
    design = _design(options, what)
    out = options.out or Path("sweeps") / Path(what.partition(".py:")[0]).stem
    sweep(
        design,
        out,
        workers=options.workers,
        cluster=options.cluster,
        retry_failed=options.retry_failed,
        progress=True,
    )
    return _print_tally(design, out, options.json)


def _design(options: argparse.Namespace, what: str) -> Design:
    if what.endswith(".toml") or (Path(what).is_file() and not what.endswith(".py")):
        numbers = (options.draws, options.seeds)
        if options.vary or options.set or options.quick or numbers != (None, None):
            raise InputError("vary, set, draws, seeds and quick must be in the file.")
        return Design.from_file(Path(what))
    experiment = registry.find(what, name="WHAT")
    fixed = {name: _value(text) for name, text in _pairs("set", options.set).items()}
    if isinstance(experiment, SweepExperiment):
        usual = experiment.usual_seeds(options.quick)
        seeds = usual if options.seeds is None else options.seeds
        return experiment.design(_own_parameters(experiment, fixed, options), seeds)
    if not options.vary:
        raise InputError("vary must be given because it names the parameters of the sweep.")
    return Design.of(
        experiment,
        axes={name: _axis(text) for name, text in _pairs("vary", options.vary).items()},
        fixed=fixed,
        quick=options.quick,
        seeds=1 if options.seeds is None else options.seeds,
        draws=0 if options.draws is None else checks.count("draws", options.draws),
    )


def _own_parameters(
    experiment: SweepExperiment, fixed: dict[str, Any], options: argparse.Namespace
) -> Any:
    """Return the parameters of an experiment with axes of its own, such as a phase diagram."""
    for flag, given in (("vary", bool(options.vary)), ("draws", options.draws is not None)):
        if given:
            raise InputError(f"{experiment.id} has axes of its own, so {flag} must not be given.")
    start = experiment.quick if options.quick else experiment.parameters
    return replace(start, **Kinds(start).fit_all(fixed))


def _pairs(flag: str, texts: list[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        name, _, value = text.partition("=")
        name = name.replace("-", "_")
        if not name or not value:
            raise InputError(f"{flag} must be NAME=VALUE; got {text!r}.")
        if name in pairs:
            raise InputError(f"{flag} must name {name} once only; got {' '.join(texts)}.")
        pairs[name] = value
    return pairs


def _axis(text: str) -> Any:
    parts = text.split(":")
    if len(parts) == 1:
        return [_value(part) for part in text.split(",")]
    if len(parts) > 4 or (len(parts) == 4 and parts[3] != "log"):
        raise InputError(f"vary must be a list with commas or LOW:HIGH:COUNT:log; got {text!r}.")
    axis: dict[str, Any] = {"from": _value(parts[0]), "to": _value(parts[1])}
    if len(parts) > 2 and parts[2] != "log":
        axis["count"] = _value(parts[2])
    return axis | ({"scale": "log"} if parts[-1] == "log" else {})


def _value(text: str) -> Any:
    """Return a number where the text is one, else the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.strip(), text.strip())


def _status(options: argparse.Namespace) -> int:
    if len(options.what) not in (2, 3):
        raise InputError("status must be followed by the folder of one sweep.")
    folder = Path(options.what[1])
    try:
        about = read_design(folder)
    except DamagedError as error:
        raise InputError(
            f"DIR must be the folder of a sweep; got {str(folder)!r}, whose {error}."
        ) from None
    try:
        experiment = _experiment_of(about.pop("experiment"), folder, options.what[2:])
        design = Design.of(experiment, **about)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"DIR must be the folder of a sweep; got {str(folder)!r}.") from None
    require()
    Store(folder, design.experiment.source).name_damage()
    return _print_tally(design, folder, options.json)


def _experiment_of(named: Any, folder: Path, given: Sequence[str]) -> Experiment:
    """Return the experiment that a design names, importing no file but one that is given too."""
    if given:
        experiment = registry.find(given[0], name="FILE")
        if registry.address(experiment) != named:
            raise InputError(
                f"FILE must be that of the sweep in {folder}, which is {named!r}; got {given[0]!r}."
            )
        return experiment
    if registry.names_file(named):
        raise InputError(
            f"FILE must be given after {folder}, because its sweep is of {named!r} and a file "
            "that only a folder names is not imported; got none."
        )
    return registry.find(named)


def _print_tally(design: Design, folder: Path, as_json: bool) -> int:
    """Print how many runs of a sweep are done, and return the exit code."""
    store = Store(folder, design.experiment.source)
    store.refresh()
    tally = store.tally(design)
    code = NOT_REPRODUCED if tally.failed or tally.missing else OK
    if as_json:
        print_json(vars(tally) | {"folder": str(folder)})
        return code
    done = _number(tally.done, "run")
    print(f"{printable(str(folder))}: {done} done, {tally.failed} failed, {tally.missing} missing.")
    if tally.outdated:
        done_by = "was done by" if tally.outdated == 1 else "were done by"
        print(f"{tally.outdated} of the missing {done_by} other source code.")
    errors = [row["error"] for row in store.rows.values() if row["status"] == "failed"]
    for error in sorted(set(errors))[:5]:
        print(f"failed, {_number(errors.count(error), 'time')}: {printable(error)}")
    if tally.failed:
        print(f"'--retry-failed' runs {'it' if tally.failed == 1 else 'these'} again.")
    if (folder / "results.parquet").exists():
        print(f"{printable(str(folder / 'results.parquet'))} opens in pandas, polars and DuckDB.")
    sys.stdout.flush()
    return code


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
