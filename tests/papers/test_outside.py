"""A paper from outside: what `headcount new paper` writes, installed, driven by commands.

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

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
CLAIMS = {f"smith2030/{name}" for name in ("softmax-norm", "loss", "mean-of-u")}
CLAIM = """
from headcount.theory import Reals, claims, lemma

@lemma(z=Reals(2))
def small(z):
    return 0 * z.sum(), 1.0

claims.named("smith2030/small")(small)
"""


def install(source: Path, target: Path) -> Path:
    """`pip install --target`, without network and without touching this environment."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    flags = ["--no-deps", "--no-index", "--no-build-isolation", "--target", str(target)]
    subprocess.run([*pip, *flags, str(source)], check=True, capture_output=True, text=True)
    return target


COMMAND = "from headcount.cli import main; main()"


def headcount(
    arguments: list[str], folder: Path, site: Path, program: str = COMMAND
) -> subprocess.CompletedProcess[str]:
    """One command in a process that sees the packages of `site`."""
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
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
    """Where the example is installed."""
    place = tmp_path_factory.mktemp("paper")
    assert run(["new", "paper", "smith2030", "--out", str(place)]) == 0
    return install(place / "smith2030", place / "site")


def test_every_command_knows_it(site, tmp_path):
    names = answer(["list"], tmp_path, site)
    assert set(names["claims"]) >= CLAIMS
    assert "smith2030/fig1" in names["figures"]
    assert "averager" in names["models"]
    assert "averager-start" in names["initialisations"]
    assert "arda2026/lemma-3" in names["claims"]


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
    blocks = dict(re.findall(r"```(toml|python)\n(.*?)```", PAGE.read_text(), flags=re.DOTALL))
    source = tmp_path / "source"
    (source / "smith2030").mkdir(parents=True)
    assert run(["new", "paper", "smith2030", "--out", str(tmp_path / "new")]) == 0
    written = (tmp_path / "new" / "smith2030" / "pyproject.toml").read_text()
    head = written.split("[project.entry-points")[0]
    (source / "pyproject.toml").write_text(head + blocks["toml"])
    (source / "smith2030" / "__init__.py").write_text(blocks["python"])
    (source / "smith2030" / "claims.py").write_text(CLAIM)
    site = install(source, tmp_path / "site")
    names = answer(["list"], tmp_path, site)
    assert "smith2030/small" in names["claims"]


def manifest(key: object, **fields: object) -> str:
    """A module whose paper has these fields."""
    given = ", ".join(f"{name}={value!r}" for name, value in fields.items())
    head = "from headcount.papers import Paper\npaper = Paper"
    return f"{head}(**{{'key': {key!r}, 'title': '', 'citation': '', **dict({given})}})"


NOUGHT = """
import dataclasses
import jax.numpy as jnp
from headcount.theory import Reals, claims, facts, lemma

@lemma(z=Reals(2))
def small(z):
    return 0 * jnp.sum(z), 1.0
"""

OUR_MODEL = "headcount.papers.arda2026.recipes:POOLED"

BROKEN = {
    "raises": ("raise ZeroDivisionError('lost')", "ZeroDivisionError: lost"),
    "exits": ("import sys\nsys.exit(3)", "paper 'exits' of exits:paper is left out: SystemExit: 3"),
    "skips": ("import pytest\npytest.skip('not here', allow_module_level=True)", "Skipped: not"),
    "prints": ("print('hello')\nraise ImportError('printed')", "ImportError: printed"),
    "no-paper": ("paper = 'a name'", "is no headcount.Paper"),
    "two-lines": ("raise RuntimeError('one\\ntwo')", "RuntimeError: one two"),
    "taken-key": (manifest("arda2026"), "'arda2026' is registered twice"),
    "taken-model": (
        manifest("fox", models={"arda2026": "fox:R"}),
        "model 'arda2026' is one of paper 'arda2026' already",
    ),
    "number-key": (manifest(7), "key = 7: is a int"),
    "path-key": (manifest("../up"), "key = '../up': must be letters"),
    "no-title": (manifest("fox", title=None), "title = None: is a NoneType"),
    "no-models": (manifest("fox", models=None), "models = None: is a NoneType"),
    "model-object": (manifest("fox", models={"fox": 3}), "models = 3: is a int"),
    "one-choice": (manifest("fox", choices=("a",)), "choices = 'a': is a str"),
    "text-claims": (manifest("fox", claims="fox.claims"), "claims = 'fox.claims': is a str"),
    "number-figures": (manifest("fox", figures=(1,)), "figures = 1: is a int"),
    "list-errata": (manifest("fox", errata=["fox"]), "errata = ['fox']: is a list"),
    "claims-fail": (
        manifest("jones", claims=("jones_claims",)),
        "claims of paper 'jones' (jones_claims) is left out: ModuleNotFoundError",
    ),
    "claims-taken": (
        manifest("hill", claims=("hill_claims",)),
        "claims of paper 'hill' (hill_claims) is left out: RuntimeError: claim 'arda2026/lemma-3'",
    ),
    "claims-early": (
        f"{NOUGHT}\nclaims.named('arda2026/lemma-5')(small)\n{manifest('early')}",
        "claim 'arda2026/lemma-5' of paper 'claims_early' of claims_early:paper is left out",
    ),
    "model-fails": (
        manifest("green", models={"green": "green_model:R"}, subject="green_subject:s"),
        "model 'green' of paper 'green' is left out: reference = 'green_model:R'",
    ),
    "model-is-none": (
        manifest("grey", models={"grey": "os:getcwd"}),
        "model 'grey' of paper 'grey' is left out: model = 'grey': is os:getcwd",
    ),
    "figures-fail": (
        manifest("brown", figures=("brown_figures",)),
        "figures of paper 'brown' (brown_figures) is left out: ModuleNotFoundError",
    ),
    "facts-fail": (
        manifest("white", facts=("white_facts",)),
        "facts of paper 'white' (white_facts) is left out: ModuleNotFoundError",
    ),
    "file-fails": (
        manifest("black", facts=("black_facts",), certificates="black_facts"),
        "verified.json of paper 'black' is left out: JSONDecodeError",
    ),
}
"""Every way in which `headcount list` meets a broken package, and what it says."""

HIDDEN = {
    "errata-fail": (
        manifest("red", errata="red_errata"),
        "errata of paper 'red' (red_errata) is left out: ModuleNotFoundError",
    ),
    "no-errata": (
        manifest("pink", errata="pink_errata"),
        "errata of paper 'pink' (pink_errata) is left out: erratum pink/E1 = 'a note': is a str",
    ),
    "certificates-fail": (
        manifest("blue", certificates="blue_files"),
        "certificates of paper 'blue' is left out: package = 'blue_files'",
    ),
    "certificate-fails": (
        manifest("teal", certificates="teal_files"),
        "certificate arda2026-lemma-5-own.json of paper 'teal' is left out: file = ",
    ),
    "setting-fails": (
        manifest("gold", models={"gold": "gold_model:R"}, setting="gold_setting:S"),
        "paper 'gold' is left out: reference = 'gold_model:R'",
    ),
    "subject-fails": (
        manifest("tan", models={"tan": OUR_MODEL}, subject="tan_subject:s"),
        "reference = 'tan_subject:s': is broken: ModuleNotFoundError",
    ),
    "latex-fails": (manifest("lime", claims=("lime_claims",)), "claim 'lime/lemma-1' is left out"),
}
"""Those that other commands meet."""

BESIDE = {
    "hill_claims.py": f"{NOUGHT}\nclaims.named('arda2026/lemma-3')(small)",
    "black_facts/__init__.py": f"{NOUGHT}\nfor n in ('black/a', 'b/b'): facts.named(n)(small)",
    "black_facts/verified.json": "{",
    "pink_errata.py": "from headcount.theory import errata\nerrata.register('pink/E1', 'a note')",
    "teal_files/__init__.py": "",
    "teal_files/certificates/arda2026-lemma-5-own.json": "{}",
    "teal_files/certificates/arda2026-lemma-5-printed.json": "{}",
    "lime_claims.py": f"{NOUGHT}\n"
    "claims.add(dataclasses.replace(small, id='lime/lemma-1', latex='\\\\frac{\\\\left'))",
}


def package(folder: Path, name: str, text: str) -> None:
    """A module and the metadata that pip leaves behind for it."""
    (folder / f"{name}.py").write_text(text)
    info = folder / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[headcount.papers]\n{name} = {name}:paper\n")


def broken_site(folder: Path, site: Path) -> Path:
    """All the broken packages before the one that works."""
    folder.mkdir()
    for name, (text, _) in {**BROKEN, **HIDDEN}.items():
        package(folder, name.replace("-", "_"), text)
    for name, text in BESIDE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return Path(os.pathsep.join([str(folder), str(site)]))


def check_lines(lines: list[str], broken: dict[str, tuple[str, str]]) -> None:
    """One line for each."""
    assert all(line.startswith("headcount: ") and "is left out" in line for line in lines), lines
    for name, (_, problem) in broken.items():
        assert sum(problem in line for line in lines) == 1, (name, lines)


def test_broken_ones_are_one_line_each_and_the_others_go_on(site, tmp_path):
    done = headcount(["list", "--json"], tmp_path, broken_site(tmp_path / "broken", site))
    assert done.returncode == 0, done.stderr
    names = json.loads(done.stdout)
    assert "smith2030/fig1" in names["figures"]
    assert "arda2026/lemma-3" in names["claims"]
    assert {"black/a (not verified)", "arda2026/sigma-2-tanh (proved)"} <= set(names["facts"])
    lines = [line for line in done.stderr.splitlines() if line != "hello"]
    seen = BROKEN | {"gold": ("", "model 'gold' of paper 'gold' is left out")}
    check_lines(lines, seen)
    assert len(lines) == len(seen)


SESSION = """
import json, sys
from headcount.cli import run
from headcount.cli._new import scaffold
from headcount.report.site._claims import claim_rows
from headcount.theory import _compare, claims, errata_page
codes = [run(command) for command in json.loads(sys.argv[1])]
ask, slow = _compare._compared, {"arda2026", "deora2024", "wu2023", "smith2030"}
_compare._compared = lambda paper, *rest: paper if paper.key in slow else ask(paper, *rest)
keys = [answer.key for answer in _compare.compare({"n": 4, "width": 4, "steps": 2})]
rows = len(claims) - len(claim_rows({}))
print(json.dumps({"codes": codes, "rows": rows, "papers": keys, "page": errata_page()}))
"""
COMMANDS = {
    "explain arda2026/lemma-5 --json": 0,
    "explain arda2026/lemma-3 --json": 0,
    "recheck arda2026-lemma-5-printed --json": 0,
    "verify arda2026/sigma-2-tanh --json": 0,
    "train --dry-run --json --n 4 --width 4": 0,
    "verify blue": 2,
    "train --model green --dry-run": 2,
    "train --model grey --dry-run": 2,
    "audit --set model=tan": 2,
    "count --model gold --loss 0.1": 2,
}


def test_no_broken_one_stops_a_command_of_the_others(site, tmp_path):
    both = broken_site(tmp_path / "broken", site)
    commands = json.dumps([command.split() for command in COMMANDS])
    done = headcount([commands], tmp_path, both, SESSION)
    assert done.returncode == 0, done.stderr
    *_, last = done.stdout.splitlines()
    result = json.loads(last)
    assert dict(zip(COMMANDS, result["codes"], strict=True)) == COMMANDS
    assert result["rows"] == 1
    assert set(result["papers"]) == {"arda2026", "deora2024", "wu2023", "smith2030"}
    assert "arda2026-lemma-5-printed.json" in result["page"]
    for name, (_, problem) in HIDDEN.items():
        assert done.stderr.count(problem) >= 1, (name, done.stderr)
    for words in ("is a paper without facts", "'green_model:R': is broken: ModuleNotFoundError"):
        assert words in done.stderr
    assert "Traceback" not in done.stderr
