"""A reader who has docs/how-to.md and nothing else: every file, edit and command, in order."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "docs" / "how-to.md").read_text(encoding="utf-8").split("\n## A model alone")[0]
STEP = re.compile(r"```(console|py|\{ \.py \})\n(.*?)```", flags=re.DOTALL)


def headcount(line: str, folder: Path) -> str:
    """One command of the page in a process of its own; `pip install -e` by its path."""
    path = os.pathsep.join([str(folder / "smith2030"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "headcount", *shlex.split(line)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (line, done.stderr)
    return done.stdout


def installed(folder: Path) -> None:
    """What pip leaves behind so that the entry point is found."""
    project = (folder / "smith2030" / "pyproject.toml").read_text()
    entry = project.split('headcount.papers"]\n')[1].replace('"', "")
    info = folder / "smith2030" / "smith2030-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: smith2030\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(f"[headcount.papers]\n{entry}")


def write(block: str, folder: Path) -> None:
    """A block whose first line names a file is that file, or a line more in its list."""
    name, _, rest = block.removeprefix("# ").partition("\n")
    name, _, place = name.partition(", in ")
    if not place:
        (folder / name).write_text(rest)
        return
    start = place.replace("...)", "")
    text = (folder / name).read_text()
    assert text.count(start) == 1, place
    (folder / name).write_text(text.replace(start, f"{start}{rest.strip()}, "))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What every command of the page printed."""
    folder, said = tmp_path_factory.mktemp("reader"), {}
    for kind, block in STEP.findall(GUIDE):
        if kind == "console":
            for line in re.findall(r"^\$ headcount (.+)$", block, flags=re.MULTILINE):
                said[line] = headcount(line, folder)
                if line.startswith("new paper"):
                    installed(folder)
        elif kind == "py":
            write(block, folder)
        else:  # a file that `new` wrote: the page shows what is there
            source = re.search('"(.*)"', block)[1]
            shown = (ROOT / source).read_text()
            own = source.split("/package/")[1].removesuffix(".txt")
            assert (folder / "smith2030" / "smith2030" / own).read_text() == shown
    return said


def test_a_reader_of_the_guide_gets_what_it_promises(told):
    expected = {
        "new paper smith2030": "claims/softmax.py",
        "list": "smith2030/fig1",
        "falsify smith2030/softmax-norm --variant printed": "the violation is proved",
        "count --model averager --loss 0.1 --steps 400 --theory-only": "20",
        "audit --model averager --width 8 --n 10 --steps 9": "2 claims: 1 holds, 1 violated",
        "reproduce smith2030/fig1 --scale quick": "confirmed",
        "falsify smith2030/lemma-3 --variant tighter --budget small": "the violation is proved",
        "explain smith2030/lemma-3": "Softmax is Lipschitz",
    }
    for line, words in expected.items():
        assert words in told[line], (line, told[line])
    assert "proved" not in told["falsify smith2030/lemma-3 --budget small"].split("certificate")[0]
    survivors = ("falsify smith2030/lemma-3 --budget small", "falsify smith2030/mean-of-u")
    for line, said in told.items():
        if line.startswith(survivors):
            assert "violat" not in said.replace("no violation", ""), said


def test_the_guide_has_every_part_of_a_paper():
    shown = set(re.findall(r"package/([\w/]+)\.py\.txt", GUIDE))
    assert shown >= {"paper", "model", "records", "constants", "audit", "figures/fig1"}
    assert len([part for part in shown if part.startswith("claims/")]) == 3
