"""`python -m tools.check_dist dist`: what is in the wheel and the sdist, and that the wheel works.

The wheel is unpacked and asked for its version, claims, certificates and a report, with the
packages of the current environment but without this checkout.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ASK = """
import sys; sys.path.insert(0, sys.argv[1])
import headcount
assert headcount.__file__.startswith(sys.argv[1]), headcount.__file__
from headcount.theory import claims, shipped_certificates
from headcount.report.site import build_site
assert len(claims) > 100 and len(list(shipped_certificates())) > 10
build_site(sys.argv[2], sys.argv[3])
print(headcount.__version__)
"""
NEEDED = ("report/site/templates/index.html", "py.typed", "explore/app.py")
NOT_WANTED = (".venv/", "__pycache__", "headcount-results", ".h5")


def check(folder: Path) -> str:
    """The version, if both files are as they should be."""
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        packed = archive.getnames()
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as place:
        names = archive.namelist()
        archive.extractall(place)
        for name in NEEDED:
            assert f"headcount/{name}" in names, f"{wheel.name} lacks {name}"
        for name in (*names, *packed):
            assert not any(part in name for part in NOT_WANTED), name
        assert any(name.endswith("/tests/conftest.py") for name in packed), "no tests in the sdist"
        command = [sys.executable, "-c", ASK, place, f"{place}/none", f"{place}/site"]
        answer = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
        assert answer.returncode == 0, answer.stderr
    version = answer.stdout.strip()
    assert f"-{version}" in wheel.name, (version, wheel.name)
    assert source.name == f"headcount-{version}.tar.gz", source.name
    return version


if __name__ == "__main__":
    print(f"headcount {check(Path(sys.argv[1]))}: wheel and sdist are complete")
