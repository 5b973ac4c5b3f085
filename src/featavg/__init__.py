"""A laboratory for feature averaging.

Trained by gradient descent on coarse labels, a network learns the average of the features of its
data, which makes it fragile; trained on finer labels it learns them one by one.

>>> import numpy as np, featavg as fa
>>> rng = np.random.default_rng(0)
>>> train = fa.MultiCluster(clusters=10, dim=3072).sample(1000, rng=rng)
>>> coarse = fa.BinaryNet.init(train, width=5, weight_scale=1e-5, bias_scale=1e-5, rng=rng)
>>> fine = fa.MultiClassNet.init(train, width=1, weight_scale=1e-5, rng=rng)
>>> for net in (coarse, fine):
...     run = fa.descend(net, train, learning_rate=1e-3, steps=100)
...     print(f"{fa.averaging_index(run.net, train):.2f}")
0.99
0.00
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

from featavg.lazy import imported


def _homes() -> dict[str, str]:
    """Return the module of each public name, as the type stub beside this file lists them."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = (node for node in stub.body if isinstance(node, ast.ImportFrom))
    return {alias.name: str(node.module) for node in imports for alias in node.names}


# Names are imported when they are first used: importing NumPy, SciPy and scikit-learn takes over a
# second, during which the command line must already be able to handle Ctrl-C.
_HOMES = _homes()
__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name: str) -> Any:
    """Import a public name, or a module of the package, when it is first used."""
    if name == "__version__":
        value = import_module("importlib.metadata").version("featavg")
    else:
        homes = {known: home for known, home in _HOMES.items() if home != __name__}
        value = imported(__name__, name, homes)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
