"""Write `lock.txt`: the pins of `constraints.txt` with the hashes of all files of each release.

The hashes are those that the package index lists, for every system and Python, so that
`pip install --require-hashes --no-deps -r lock.txt` accepts the same files everywhere, and nothing
else. PyTorch is left out: its builds for one version differ between indexes (CPU, CUDA), so that a
hash of one would refuse the others.

    python tools/lock.py           # write it
    python tools/lock.py --check   # is it complete, without a network?
"""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag
from urllib.request import urlopen

ROOT = Path(__file__).parents[1]
WITHOUT_HASH = {"torch"}
HEADER = "# Written by 'make lock' from constraints.txt: the hashes of all files of each release.\n"


def pins(file: Path) -> dict[str, str]:
    """Return the versions of a file of constraints or requirements by normal names."""
    found = re.findall(r"^([\w.-]+)==([^\s;\\]+)", file.read_text(), re.M)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


class Links(HTMLParser):
    """The links of a page of the index."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note the target of a link."""
        if tag == "a":
            self.targets += [value for name, value in attributes if name == "href" and value]


def index() -> str:
    """Return the address of the index that pip uses."""
    asked = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    configured = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603
    if configured.returncode == 0:
        return configured.stdout.strip().rstrip("/")
    from pip._internal.models.index import PyPI  # where pip itself keeps its default

    return str(PyPI.simple_url)


def hashes(base: str, name: str, version: str) -> list[str]:
    """Return the hashes of all files of a release."""
    with urlopen(f"{base}/{name}/", timeout=60) as answer:  # noqa: S310
        page = answer.read().decode()
    stem = re.escape(name).replace(r"\-", "[-_.]+")
    wanted = re.compile(rf"{stem}-{re.escape(version)}(-.+\.whl|\.tar\.gz|\.zip)", re.I)
    found = set()
    for target in Links(page).targets:
        place, fragment = urldefrag(target)
        if wanted.fullmatch(unquote(place.rpartition("/")[2])) and fragment.startswith("sha256="):
            found.add(fragment.removeprefix("sha256="))
    return sorted(found)


def write(place: Path) -> None:
    """Ask the index for the hashes of all pins."""
    base = index()
    wanted = {n: v for n, v in pins(ROOT / "constraints.txt").items() if n not in WITHOUT_HASH}
    with ThreadPoolExecutor(8) as threads:
        found = threads.map(lambda pin: hashes(base, *pin), wanted.items())
    lines = [HEADER]
    for (name, version), known in zip(wanted.items(), found, strict=True):
        if not known:
            raise SystemExit(f"the index has no files of {name} {version}.")
        lines.append(
            " \\\n".join([f"{name}=={version}", *(f"    --hash=sha256:{h}" for h in known)])
        )
        lines.append("\n")
    place.write_text("".join(lines))


def check(place: Path) -> list[str]:
    """Return how the lock differs from the constraints."""
    wanted, locked = pins(ROOT / "constraints.txt"), pins(place)
    wrong = [n for n in wanted if n not in WITHOUT_HASH and locked.get(n) != wanted[n]]
    wrong += [name for name in locked if name not in wanted]
    blocks = re.split(r"\n(?=\w)", place.read_text().removeprefix(HEADER).strip())
    return wrong + [b for b in blocks if not re.search(r"--hash=sha256:[0-9a-f]{64}", b)]


def main() -> int:
    """Write the lock, or check it."""
    place = ROOT / "lock.txt"
    if "--check" not in sys.argv:
        write(place)
        return 0
    for name in (wrong := check(place)):
        print(f"lock.txt and constraints.txt differ in {name}; run 'make lock'.")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
