"""`featavg certify`: the exact robust radii of a network in a file of weights."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.table import Table

from featavg import checks
from featavg.apps.cli.audit import add_columns
from featavg.apps.cli.outputs import check_outputs, folder_beside
from featavg.apps.cli.terminal import OK, Terminal, print_json, whole_number
from featavg.arrays import FloatArray, IntArray
from featavg.errors import InputError
from featavg.files import write_atomically

_BEGINNINGS = {"radii.csv": r"index,(id,)?label,prediction,lower,upper,exact,norm\n"}
_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
_DESCRIPTION = """\
Compute how far each point can be moved before the decision of a network changes: exactly where the
search ends in time, and otherwise between two certified bounds.

MODEL holds the weights of a network of one hidden ReLU layer, A relu(W x + b) + c, as named arrays,
.npz or .safetensors: W (neurons, coordinates), b, A (outputs, neurons), c, and possibly labels (of
the outputs), leak (the slope of a leaky ReLU), linear (a matrix past the hidden layer; alone with c
it is a linear classifier), mean and scale (the network then takes (x - mean) / scale). The names
that PyTorch gives to two Linear layers are understood. Nothing in the file is executed.

DATA holds points, and labels if there are any: .npz with X and y, .csv or .parquet with a column of
labels, or X.npy beside y.npy. With labels, a point that is misclassified has the radius 0; without,
the radius is that within which the prediction stays.

Prints a table, and writes radii.csv."""
_EXAMPLES = """\
To save an MLPClassifier m of scikit-learn with one hidden layer of relu:
  import numpy as np
  np.savez("model.npz", W=m.coefs_[0].T, b=m.intercepts_[0], A=m.coefs_[1].T, c=m.intercepts_[1], labels=m.classes_)

a linear classifier m of scikit-learn:
  import numpy as np
  np.savez("model.npz", linear=m.coef_, c=m.intercept_, labels=m.classes_)

a module m = Sequential(Linear, ReLU, Linear) of PyTorch:
  import numpy as np
  np.savez("model.npz", **{name: array.numpy(force=True) for name, array in m.state_dict().items()})

and a StandardScaler s before it: mean=s.mean_, scale=s.scale_.

Examples: featavg certify model.npz points.csv --label species; featavg certify model.safetensors
test.npz --norm linf --bounds 0 1 --points 50."""  # noqa: E501  lines to copy


def add_parsers(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "certify",
        help="compute the exact robust radii of your own network",
        description=_DESCRIPTION,
        epilog=_EXAMPLES.replace("%", "%%"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="the weights of the network")
    parser.add_argument("data", type=Path, metavar="DATA", help="the points, possibly with labels")
    parser.add_argument("--label", metavar="COLUMN", help="the column or array of labels")
    add_columns(parser)
    norms = ("l2", "linf")
    parser.add_argument("--norm", choices=norms, default="l2", help="of perturbations (l2)")
    box_of_points = "the lowest and highest value of a coordinate, such as 0 1 for pixels"
    parser.add_argument(
        "--bounds", nargs=2, type=float, metavar=("LOW", "HIGH"), help=box_of_points
    )
    target = "only perturbations that turn the decision to this label count"
    parser.add_argument("--target", metavar="LABEL", help=target)
    limit = "seconds for each point (10)"
    parser.add_argument("--time-limit", type=float, default=10.0, metavar="SECONDS", help=limit)
    parser.add_argument(
        "--points", type=whole_number, default=200, metavar="N", help="how many points (200)"
    )
    parser.add_argument("--seed", type=whole_number, default=0, help="the seed of their choice (0)")
    out = "where to write (default: DATA-certify beside DATA)"
    parser.add_argument("--out", type=Path, metavar="DIR", help=out)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(command=certify)


def certify(options: argparse.Namespace) -> int:
    """Certify the points of a file, and write and print the result."""
    from featavg.auditing.files import read
    from featavg.networks.shallow_files import read_shallow
    from featavg.robustness import certify as exact

    out = options.out or folder_beside(options.data, "certify", "DATA")
    check_outputs(out, _BEGINNINGS, [options.model, options.data])
    net = read_shallow(options.model)
    columns = {name: getattr(options, name) for name in ("label", "id", "drop")}
    table = read(options.data, **columns, need_labels=False)
    if table.x.shape[1] != net.dim:
        raise InputError(
            f"DATA must have the {net.dim} coordinates that MODEL takes; {options.data.name} has "
            f"{table.x.shape[1]}."
        )
    rows = _chosen(len(table.x), options.points, options.seed)
    x = table.x[rows].astype(np.float64)
    y = None if table.y is None else own_labels("labels", table.y[rows], net.labels)
    target = options.target
    if target is not None:
        target = own_labels("target", np.array([target]), net.labels)[0]
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(net.outputs(x)).all():
            raise InputError("outputs of MODEL must be finite; some overflow at points of DATA.")
    found = exact.exact_radii(
        net,
        x,
        y,
        norm=options.norm,
        bounds=None if options.bounds is None else tuple(options.bounds),
        target=target,
        time_limit=options.time_limit,
        progress=True,
    )
    predicted = net.predict(x)
    path = out / "radii.csv"
    ids = None if options.id is None else [table.ids[row] for row in rows]
    write_atomically(path, _csv(rows, y, predicted, found, ids).encode())
    summary = _summary(found, predicted, y) | {"available": len(table.x), "file": str(path)}
    if options.json:
        print_json(summary)
        return OK
    _print(summary, table.notes)
    return OK


def own_labels(name: str, values: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """Return values as labels of a network: the text 1, as a csv file has it, is the label 1.

    Examples
    --------
    >>> own_labels("labels", np.array(["1", "0"]), np.array([0, 1]))
    array([1, 0])
    >>> own_labels("labels", np.array(["2"]), np.array([0, 1]))
    Traceback (most recent call last):
    featavg.errors.InputError: labels of DATA must be those of MODEL (0, 1); got '2'.
    """
    known = dict.fromkeys(labels.tolist())
    key: Callable[[Any], Any] = _number_or_text
    if len({key(label) for label in known}) < len(known):  # such as the texts 1 and 01
        key = str
    places = {key(label): k for k, label in enumerate(labels.tolist())}
    for k, label in enumerate(labels.tolist()):
        if isinstance(label, bool):  # in a csv file True is a text, and not the number 1
            places.setdefault(str(label), k)
    for value in values.tolist():
        if key(value) not in places:
            listed = ", ".join(map(str, list(known)[:10])) + (", …" if len(known) > 10 else "")
            what = f"{name} of DATA" if name == "labels" else name
            must = "those" if name == "labels" else "one"
            raise InputError(f"{what} must be {must} of MODEL ({listed}); got {value!r}.")
    return labels[[places[key(value)] for value in values.tolist()]]


def _number_or_text(value: Any) -> Any:
    try:
        number = checks.parsed(value)
    except (TypeError, ValueError):
        return str(value)
    return number if np.isfinite(number) else str(value)


def _chosen(available: int, points: int, seed: int) -> IntArray:
    """Return which rows are certified, in order."""
    count = checks.count("points", points)
    rng = np.random.default_rng(checks.seed("seed", seed))
    return np.sort(rng.choice(available, size=min(count, available), replace=False))


def _csv(
    rows: IntArray,
    y: NDArray[Any] | None,
    predicted: NDArray[Any],
    found: Any,
    ids: list[Any] | None,
) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    named = [] if ids is None else ["id"]
    writer.writerow(["index", *named, "label", "prediction", "lower", "upper", "exact", "norm"])
    for k, row in enumerate(rows.tolist()):
        label = "" if y is None else y[k]
        ends = [repr(float(end[k])) for end in (found.lower, found.upper)]
        exact = "true" if found.exact[k] else "false"
        name = [] if ids is None else [ids[k]]
        writer.writerow([row, *name, label, predicted[k], *ends, exact, found.norm])
    return text.getvalue()


def _summary(found: Any, predicted: NDArray[Any], y: NDArray[Any] | None) -> dict[str, Any]:
    radii = _radii_to_show(found.upper)
    return {
        "points": len(predicted),
        "accuracy": None if y is None else float((predicted == y).mean()),
        "exact": float(found.exact.mean()),
        "norm": str(found.norm),
        "quantiles": [
            {"share": share, "lower": _quantile(found.lower, share)}
            | {"upper": _quantile(found.upper, share)}
            for share in _QUANTILES
        ],
        "robust": [
            {"radius": radius, "lower": float((found.lower > radius).mean())}
            | {"upper": float((found.upper > radius).mean())}
            for radius in radii
        ],
    }


def _quantile(values: FloatArray, share: float) -> float:
    return float(np.quantile(values, share, method="inverted_cdf"))  # one of them: no inf - inf


def _radii_to_show(upper: FloatArray) -> list[float]:
    """Return five radii from 0 to one that few points survive, of two digits."""
    finite = upper[np.isfinite(upper)]
    largest = _quantile(finite, 0.9) if len(finite) else 0.0
    return sorted({float(f"{k / 4 * largest:.2g}") for k in range(5)})


def _print(summary: dict[str, Any], notes: tuple[str, ...]) -> None:
    terminal = Terminal()
    of = "" if summary["points"] == summary["available"] else f" of {summary['available']}"
    accuracy = summary["accuracy"]
    facts = [f"{summary['points']}{of} points"]
    facts += [] if accuracy is None else [f"accuracy {accuracy:.1%}"]
    facts += [f"exact radii for {summary['exact']:.1%}", f"norm {summary['norm']}"]
    terminal.print_plain("; ".join(facts) + ".")
    look: dict[str, Any] = {"box": box.SIMPLE_HEAD, "highlight": False}
    quantiles = Table("radius", *(f"{row['share']:.0%}" for row in summary["quantiles"]), **look)
    share = "predictions that stay" if accuracy is None else "robust accuracy"
    robust = Table(f"{share} at", *(f"{row['radius']:g}" for row in summary["robust"]), **look)
    for name, end in (("at least", "lower"), ("at most", "upper")):
        quantiles.add_row(name, *(f"{row[end]:.4g}" for row in summary["quantiles"]))
        robust.add_row(name, *(f"{row[end]:.1%}" for row in summary["robust"]))
    terminal.print(quantiles, robust)
    for note in notes:
        terminal.print_plain(note)
    terminal.print_plain(summary["file"])
