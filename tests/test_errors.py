"""A missing optional dependency is one sentence, never a traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest

from featavg.errors import InputError, optional_imports

RUN = """
import sys
class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1].split(","):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, NotInstalled())
from featavg.apps.cli.main import main
sys.exit(main(["run", sys.argv[2], "--quick"]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("blocked", "experiment", "sentence"),
    [
        ("torch", "figure3-mnist", "Figure 3 on images needs PyTorch"),
        ("torch", "figure3-cifar10", "Figure 3 on images needs PyTorch"),
        ("lightning_fabric", "figure3-fashion", "Figure 3 on images needs Lightning Fabric"),
        ("torch", "margin-mnist", "margin-mnist needs PyTorch"),
        ("torch", "figure10", "the embedding of images needs PyTorch"),
    ],
)
def test_an_experiment_without_its_extra(blocked, experiment, sentence, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", RUN, blocked, experiment],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert done.stderr == f"featavg: {sentence}: pip install 'featavg[vision]'.\n"


def test_other_import_errors_are_passed_on():
    with pytest.raises(ModuleNotFoundError), optional_imports("this"):
        raise ModuleNotFoundError(name="featavg.nothing")
    with pytest.raises(ModuleNotFoundError), optional_imports("this"):
        raise ModuleNotFoundError("without a name")


def test_as_a_decorator():
    @optional_imports("this")
    def function(name):
        raise ModuleNotFoundError(name=name)

    assert function.__name__ == "function"
    for _ in range(2):
        with pytest.raises(InputError, match="this needs Dask: pip install 'featavg.cluster.'"):
            function("distributed.comm")
