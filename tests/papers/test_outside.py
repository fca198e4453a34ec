"""A paper from outside: built, installed, and driven through the command line.

The package is installed by pip into a folder of its own, which PYTHONPATH then names: that is what
a user's environment looks like to a new process. Nothing is downloaded.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from headcount.cli import run

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "architecture.md"


def install(source: Path, target: Path) -> Path:
    """`pip install --target`, without network and without touching this environment."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    flags = ["--no-deps", "--no-index", "--no-build-isolation", "--target", str(target)]
    subprocess.run([*pip, *flags, str(source)], check=True, capture_output=True, text=True)
    return target


def headcount(arguments: list[str], folder: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """One command in a process that sees the packages of `site`."""
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", "from headcount.cli import main; main()", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )


def answer(arguments: list[str], folder: Path, site: Path) -> dict:
    """The JSON object of a command that must succeed without a word on standard error."""
    done = headcount([*arguments, "--json"], folder, site)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where smith2030 is installed."""
    return install(HERE / "smith2030", tmp_path_factory.mktemp("site"))


def test_every_command_knows_it(site, tmp_path):
    names = answer(["list"], tmp_path, site)
    assert {"smith2030/softmax-norm", "smith2030/loss"} <= set(names["claims"])
    assert "smith2030/fig1" in names["figures"]
    assert "averager" in names["models"]
    assert "averager-start" in names["initialisations"]
    assert "arda2026/lemma-3" in names["claims"]

    figure = answer(["reproduce", "smith2030/fig1", "--scale", "quick"], tmp_path, site)
    assert [v["outcome"] for v in figure["verdicts"]] == ["confirmed"]


def test_its_theorems_are_asked(site, tmp_path):
    flags = ["--set", "model=averager", "--width", "8", "--n", "10", "--steps", "9"]
    audited = answer(["audit", *flags], tmp_path, site)
    outcomes = {claim["id"]: claim for claim in audited["claims"]}
    assert set(outcomes) == {"smith2030/softmax-norm", "smith2030/loss"}
    assert outcomes["smith2030/softmax-norm"]["outcome"] == "holds"
    assert outcomes["smith2030/loss"]["rhs"] == pytest.approx(1 / 3 + 1 / 8)

    flags = ["--model", "averager", "--loss", "0.1", "--steps", "400", "--theory-only"]
    counted = answer(["count", *flags], tmp_path, site)
    # 1/sqrt(400) + 1/m <= 0.1 from m = 20 on.
    assert 20 in {a["value"] for a in counted["theorems"] if a["source"] == "smith2030/loss"}


def test_its_finished_runs_are_audited(site, tmp_path):
    """Its subject takes no run: trained again from the file's configuration, and said so."""
    flags = ["--model", "averager", "--width", "8", "--n", "10", "--steps", "9"]
    assert headcount(["train", *flags, "--out", "run.nc"], tmp_path, site).returncode == 0
    audited = answer(["audit", "run.nc"], tmp_path, site)
    assert audited["setting"]["steps"] == 9
    assert {claim["id"] for claim in audited["claims"]} == {
        "smith2030/softmax-norm",
        "smith2030/loss",
    }
    again = "the audit of smith2030 reads no runs: trained again from its configuration"
    assert audited["notes"] == [again]


def test_its_false_claim_is_refuted_and_the_proof_checked(site, tmp_path):
    flags = ["--variant", "printed", "--budget", "small"]
    found = answer(["falsify", "smith2030/softmax-norm", *flags], tmp_path, site)
    assert found["violated"]
    assert found["proved"]
    checked = answer(["recheck", found["certificate"]], tmp_path, site)
    assert checked["confirmed"]
    assert checked["claim"] == "smith2030/softmax-norm"


def test_the_recipe_of_the_architecture_page_works(tmp_path):
    """The page's own code makes a paper: its metadata, its manifest, and a module of claims."""
    blocks = dict(re.findall(r"```(toml|py)\n(.*?)```", PAGE.read_text(), flags=re.DOTALL))
    source = tmp_path / "source"
    (source / "smith2030").mkdir(parents=True)
    head = (HERE / "smith2030" / "pyproject.toml").read_text().split("[project.entry-points")[0]
    (source / "pyproject.toml").write_text(head + blocks["toml"])
    (source / "smith2030" / "__init__.py").write_text(blocks["py"])
    claims = (HERE / "smith2030" / "smith2030" / "claims.py").read_text()
    (source / "smith2030" / "claims.py").write_text(claims)
    site = install(source, tmp_path / "site")
    names = answer(["list"], tmp_path, site)
    assert {"smith2030/softmax-norm", "smith2030/loss"} <= set(names["claims"])


def test_a_new_paper_installs_and_is_known(tmp_path):
    """What `headcount new paper` writes: its false form is refuted, its figure runs, as is."""
    assert run(["new", "paper", "smith2031", "--out", str(tmp_path)]) == 0
    site = install(tmp_path / "smith2031", tmp_path / "site")
    flags = ["--variant", "printed", "--budget", "10"]
    found = answer(["falsify", "smith2031/lemma-1", *flags], tmp_path, site)
    assert found["proved"]
    figure = answer(["reproduce", "smith2031/fig1", "--scale", "quick"], tmp_path, site)
    assert [v["outcome"] for v in figure["verdicts"]] == ["confirmed"]


BROKEN = {
    "raises": ("raise ZeroDivisionError('lost')", "ZeroDivisionError: lost"),
    "no-paper": ("paper = 'a name'", "is no headcount.Paper"),
    "taken-key": (
        "from headcount.papers import Paper\npaper = Paper(key='arda2026', title='', citation='')",
        "'arda2026' is registered twice",
    ),
    "two-lines": ("raise RuntimeError('one\\ntwo')", "RuntimeError: one two"),
    "claims-fail": (
        "from headcount.papers import Paper\n"
        "paper = Paper(key='jones', title='', citation='', claims=('jones_claims',))",
        "claims of paper 'jones' (jones_claims) is left out: ModuleNotFoundError",
    ),
    "model-fails": (
        "from headcount.papers import Paper\n"
        "paper = Paper(key='green', title='', citation='', models={'green': 'green_model:R'})",
        "model 'green' of paper 'green' is left out: ModuleNotFoundError",
    ),
    "figures-fail": (
        "from headcount.papers import Paper\n"
        "paper = Paper(key='brown', title='', citation='', figures=('brown_figures',))",
        "figures of paper 'brown' (brown_figures) is left out: ModuleNotFoundError",
    ),
}


def package(folder: Path, name: str, text: str) -> None:
    """A module and the metadata that pip leaves behind for it."""
    (folder / f"{name}.py").write_text(text)
    info = folder / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[headcount.papers]\n{name} = {name}:paper\n")


def test_broken_ones_are_one_line_each_and_the_others_go_on(site, tmp_path):
    beside = tmp_path / "broken"
    beside.mkdir()
    for name, (text, _) in BROKEN.items():
        package(beside, name.replace("-", "_"), text)
    both = Path(os.pathsep.join([str(beside), str(site)]))
    done = headcount(["list", "--json"], tmp_path, both)
    assert done.returncode == 0, done.stderr
    names = json.loads(done.stdout)
    assert "smith2030/fig1" in names["figures"]
    assert "arda2026/lemma-3" in names["claims"]
    lines = done.stderr.splitlines()
    assert all(line.startswith("headcount: ") and "is left out" in line for line in lines), lines
    for name, (_, problem) in BROKEN.items():
        assert sum(problem in line for line in lines) == 1, (name, lines)
    assert len(lines) == len(BROKEN)
