"""Fetch MathJax with npm, check it, and put the one file that is needed into docs/_vendor.

Without npm the documentation is built all the same, with the formulas as MathML.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

VERSION = "3.2.2"
SHA256 = "1b9c0a1c44df864e915690558e72adb9cc5203360daefd385084ced3b6c64c09"
FILES = {
    "package/es5/tex-svg-full.js": "mathjax/tex-svg-full.js",
    "package/LICENSE": "mathjax/LICENSE",
}
VENDOR = Path(__file__).parent / "_vendor"


def main() -> int:
    """Fetch what is missing; 1 if npm is not there or fails, 2 if what it fetched is not ours."""
    if all((VENDOR / name).is_file() for name in FILES.values()):
        return 0
    npm = shutil.which("npm")
    if npm is None:
        print(
            "docs: npm is not installed ('apt-get install npm' on Debian), so formulas are built "
            "as MathML instead of with MathJax.",
            file=sys.stderr,
        )
        return 1
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", f"mathjax@{VERSION}", "--ignore-scripts", "--loglevel=error"]
        command += ["--fetch-retries=1", f"--cache={folder}/npm-cache"]
        done = subprocess.run(command, cwd=folder, capture_output=True, check=False)  # noqa: S603
        tarball = Path(folder) / f"mathjax-{VERSION}.tgz"
        if done.returncode != 0 or not tarball.is_file():
            reason = done.stderr.decode(errors="replace").strip().splitlines()[:1]
            print(
                f"docs: npm could not fetch MathJax ({''.join(reason) or done.returncode}), so "
                "formulas are built as MathML.",
                file=sys.stderr,
            )
            return 1
        found = hashlib.sha256(tarball.read_bytes()).hexdigest()
        if found != SHA256:
            print(
                f"docs: mathjax-{VERSION}.tgz must have the SHA-256 {SHA256}; got {found}. "
                "Nothing of it is kept.",
                file=sys.stderr,
            )
            return 2
        with tarfile.open(tarball) as archive:
            for member, name in FILES.items():
                content = archive.extractfile(member)
                if content is None:
                    raise RuntimeError(f"{member} must be a file of mathjax-{VERSION}.tgz.")
                target = VENDOR / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.read())
    return 0


if __name__ == "__main__":
    sys.exit(main())
