"""Read fitted estimators from files, without executing anything in them."""

from __future__ import annotations

from pathlib import Path

from featavg.array_files import open_arrays
from featavg.errors import InputError
from featavg.estimators._base import CertifiedClassifier
from featavg.estimators.averaging import AveragingClassifier
from featavg.estimators.decoupled import DecoupledClassifier
from featavg.estimators.plain_data import FORMAT, expected_arrays, parameters_of, restore
from featavg.estimators.radius import RadiusClassifier
from featavg.files import DamagedError

_KINDS: dict[str, type[CertifiedClassifier]] = {
    kind.__name__: kind for kind in (AveragingClassifier, DecoupledClassifier, RadiusClassifier)
}
_MOST, _LONGEST_REASON = 1 << 32, 200


def load(path: str | Path) -> CertifiedClassifier:
    """Read an estimator that its method `save` wrote. Nothing in the file is executed.

    The file ends with a checksum, and one in which any byte differs is refused.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from featavg.estimators import AveragingClassifier, load
    >>> model = AveragingClassifier(random_state=0).fit(np.eye(8), [0, 1] * 4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(folder + "/model.npz")
    ...     again = load(folder + "/model.npz")
    >>> bool((again.predict_radius(np.eye(8)) == model.predict_radius(np.eye(8))).all())
    True
    """
    path = Path(path)
    try:
        with open_arrays(path, most=_MOST, sealed=True) as file:
            about = file.about
            if about["format"] != FORMAT:
                raise ValueError("it has another format")
            file.check(expected_arrays(about, file.declared))
            arrays = {name: file.read(name) for name in file.declared}
        estimator = _KINDS[about["kind"]](**parameters_of(about))
        restore(estimator, about, arrays)
    except DamagedError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        reason = str(error).rstrip(".")[:_LONGEST_REASON]
        raise InputError(f"{path.name} must be a saved featavg estimator; {reason}.") from None
    return estimator
