"""What a hurried user types: one clear line, exit 2, no traceback, nothing computed or left."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from headcount import core, data, kernels, lab, theory, training
from headcount.cli import run
from headcount.core import BadArgument
from headcount.papers import arda2026, deora2024

SECONDS = 1.0
"""Of processor time that a refusal may take; imports and what is compiled once come before."""


def takes(refusal: Callable[[], object]) -> float:
    """Processor seconds; of two calls the second, if the first may have imported something."""
    for _ in range(2):
        before = time.process_time()
        refusal()
        if (spent := time.process_time() - before) < SECONDS:
            break
    return spent


LINES = """
train --width abc
train --width -8
train --width 3.0
train --width 1e3
train --width 18446744073709551616
train --n -5
train --n 0
train --n 1e400
train --n 9223372036854775808
train --steps -1
train --steps 0
train --steps many
train --steps 99999999999999999999
train --seeds a:b
train --seeds 5:5
train --seeds 3,3
train --seeds -1
train --seeds 1.5
train --seeds :
train --eta nan
train --eta -0.1
train --eta inf
train --eta fast
train --rho 1,2
train --rho 1,2,3,4
train --rho a,b,c
train --rho=nan,1,1
train --rho 0,1,1
train --rho inf,1,1
train --model attention
train --model arda2027
train --model arda-2026
train --init zeros
train --init he
train --data gaussians
train --data mnist
train --data .
train --optimiser SGD
train --optimiser rmsprop
train --optimiser sgd --batch-size 0
train --optimiser sgd --batch-size -1
train --loss mse
train --loss logistc
train --loss cross-entropy --model wu2023 --nope
train --record losses
train --record loss --record-every 0
train --record loss --record-every -2
train --keep last
train --keep best,best,worst
train --dtype double
train --dtype float128
train --chunk 0
train --chunk -4
train --devices 0
train --devices 64
train --out /proc/nope/run.nc
train --out .
train missing.toml
train /
train --d 0
train --T 0
train --T -1
train --T two
train --d 99999999999999999999
train --T 99999999999999999999
train --pool 0
train --pool -3
train --nu 1,2
train --nu=-1,1,1
train --data-option =3
train --data-option T
train --data-option T=x
train --data-option T=1e999
train --model-option depth=3
train --init-option std=0.1
train --activation rleu
train --activation tanh(
train --activation __import__('os')
train --query first
train --query seeded:x
train --readout mean
train --scaling big
train --pooling max
train --gamma nan
train --n-val -1
train --resume maybe
train --widht 8
train -w 8
train --model deora2024 --T 1
train --model deora2024 --d 1
train --model deora2024 --query last
train --model wu2023 --pooling max
train --model wu2023 --width 0
train --model indrnn --gamma -1
train --model indrnn --query last
audit --delta 0
audit --delta 1
audit --delta 2
audit --delta x
audit --set width
audit --set widht=3
audit run.nc
audit --strict yes
audit --seeds 9:2
audit --T 0
ntk --seed -1
ntk --seed x
ntk --tile 0
ntk --tile -5
ntk --dtype float16
ntk --frozen Q
ntk --eigenvalues -3
ntk --n 0
ntk --out .
ntk nowhere.toml
explain
explain arda2026
explain lemma-3
explain arda2026/lemma-99
explain arda2026/lemma-3 arda2026/lemma-5
explain arda2026/lemma-3 --tex
falsify
falsify nothing
falsify missing.py
falsify missing.py:lemma
falsify arda2026/lemma-3 --variant nope
falsify arda2026/lemma-3 --budget huge
falsify arda2026/lemma-3 --budget 0
falsify arda2026/lemma-3 --budget=-1
falsify arda2026/lemma-3 --budget 1.5
falsify arda2026/lemma-3 --seed -1
falsify arda2026/lemma-3 --out /proc/nope
verify
verify nothing
verify missing.py
verify arda2026/sigma-2-tanh --boxes 0
verify arda2026/sigma-2-tanh --boxes x
verify arda2026/sigma-2-tanh --tolerance -1
verify arda2026/sigma-2-tanh --variant nope
recheck
recheck nowhere.json
recheck /
recheck arda2026/psi-2 --lemma no.py
new
new figure
new theorem my
new lemma 1bad
new lemma a/b
count
count --loss 0
count --loss -1
count --loss nan
count --gap 0
count --loss 1 --gap 1
count --loss 1 --ask heads
count --loss 1 --delta 0
count --loss 1 --plot a.gif
count --loss 1 --theory-only --plot a.png
count --loss 1 --T 0
compare --share 0
compare --share 2
compare --loss 0
compare --loss 1 --share 0.5
compare --papers nobody
compare --data nothing
compare --delta -1
compare --T 0
falsify arda2026/lemma-3 --export .
verify arda2026/sigma-2-tanh --export .
verify arda2026/sigma-2-tanh --boxes 1.5
verify arda2026/lemma-3
recheck arda2026/psi-2 --export .
sharpen arda2026/lemma-3 --boxes -1
sharpen arda2026/lemma-3 --plot a.bmp
sharpen arda2026/lemma-3 --plot .
sharpen arda2026/lemma-3 --variant zzz
new lemma class
new paper arda2026
count --loss 1 --most-width 0
count --loss 1 --steps 0
train --record ,
ntk --frozen ,
audit --markdown --json
show arda2026/fig1 --style poster
show arda2026/fig1 --panels z
list everything
list --paper nobody
list --paper
reproduce
reproduce arda2026/fig99
reproduce fig1
reproduce arda2026/fig1 --scale tiny
reproduce arda2026/fig1 --seeds x
reproduce arda2026/fig1 --workers -1
reproduce arda2026/fig1 --workers 100000
reproduce arda2026/fig1 --executor cloud
reproduce arda2026/fig1 --executor dask
reproduce arda2026/fig1 --executor inline --workers 2
reproduce arda2026/fig1 --option colour=red
reproduce arda2026/fig1 --option colour
reproduce arda2026/fig1 --trial-timeout 0
reproduce arda2026/fig1 --trial-timeout nan
reproduce arda2026/fig1 --retries -1
reproduce arda2026/fig1 --all
show
show nothing
show arda2026/fig1 --scale huge
show arda2026/fig1 --out nowhere
report --out nowhere
explore --port 70000
explore --port -1
explore --port x
doctor now
doctor --fix
status --out
help
--nope
""".strip().splitlines()


@pytest.fixture(scope="module", autouse=True)
def ready() -> None:
    """Registries are filled and what every command imports is there."""
    for line in ("list --json", "train --dry-run --json --T 3 --d 2 --pool 4 --n 4 --width 4"):
        assert run(line.split()) == 0


@pytest.mark.parametrize("line", LINES)
def test_a_bad_command_line_is_one_line(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert takes(lambda: run(line.split())) < SECONDS
    capsys.readouterr()
    code = run(line.split())
    said = capsys.readouterr()
    assert code == 2, said.err
    assert said.err.startswith("headcount: ")
    assert said.err.count("\n") == 1
    assert "Traceback" not in said.err
    assert not said.out
    assert len(said.err) < 900
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["train", "--model", ""], "--model '': "),
        (["count", "--loss", "1", "--steps", "0"], "--steps 0: must be a whole number >= 1"),
        (["count", "--loss", "1", "--plot", "a.gif"], "--plot a.gif: is no name for a picture"),
        (["verify", "arda2026/lemma-3"], "is a claim about records"),
    ],
)
def test_what_was_typed_stands_in_the_line(line, words, capsys):
    assert run(line) == 2
    assert words in capsys.readouterr().err


def test_there_are_many_of_them():
    assert len(set(LINES)) >= 150
    assert len(CALLS) >= 60


MODEL = arda2026.PooledAttention(d=2, m=4, activation="tanh")
START = arda2026.paired(MODEL, seed=0)
OTHER = deora2024.MultiHeadAttention(T=3, d=2, H=4)
X, Y = np.zeros((5, 3, 2)), np.ones(5)
CLAIM = theory.claims["arda2026/lemma-3"]
NAN = np.full((5, 3, 2), np.nan)
OTHERS = jax.tree.map(np.zeros, OTHER.shapes(), is_leaf=lambda leaf: type(leaf) is tuple)


def train(**changed: Any) -> Any:
    given = {"model": MODEL, "initial": START, "x": X, "y": Y, "rule": training.gd(0.1), "steps": 1}
    return training.train(**{**given, **changed})


def config(**values: Any) -> Any:
    return training.TrainConfig.of(values)


CALLS = {
    "x of two axes": lambda: train(x=np.zeros((5, 3))),
    "x without samples": lambda: train(x=np.zeros((0, 3, 2)), y=np.zeros(0)),
    "x of other features": lambda: train(x=np.zeros((5, 3, 7))),
    "x of words": lambda: train(x=np.full((5, 3, 2), "a")),
    "x with NaN": lambda: train(x=NAN),
    "x ragged": lambda: train(x=[[1.0], [1.0, 2.0]]),
    "y too short": lambda: train(y=np.ones(4)),
    "y of two axes": lambda: train(y=np.ones((5, 1))),
    "y with NaN": lambda: train(y=np.full(5, np.nan)),
    "y no signs": lambda: train(y=np.zeros(5), loss="logistic"),
    "no steps": lambda: train(steps=0),
    "half a step": lambda: train(steps=1.5),
    "steps as words": lambda: train(steps="ten"),
    "endless steps": lambda: train(steps=10**12),
    "unknown loss": lambda: train(loss="mse"),
    "unknown recorder": lambda: train(record="accuracy"),
    "unknown tracer": lambda: train(trace="accuracy"),
    "validation not given": lambda: train(record="validation"),
    "validation of one": lambda: train(validation=(X,)),
    "unknown dtype": lambda: train(dtype="float8"),
    "unknown iterate": lambda: train(keep="last"),
    "no rule": lambda: train(rule=None),
    "a rule by name": lambda: train(rule="gd"),
    "no model": lambda: train(model=3),
    "parameters of another model": lambda: train(initial=OTHERS),
    "parameters as a number": lambda: train(initial=3),
    "parameters as a dict": lambda: train(initial={"c": np.zeros(4)}),
    "seeds without an axis": lambda: train(seeds=[0, 1]),
    "a seed twice": lambda: train(seeds=[0, 0]),
    "chunk of nothing": lambda: train(chunk=0),
    "tokens of another kind": lambda: train(tokens=3),
    "negative step": lambda: training.gd(-1.0),
    "step as words": lambda: training.gd("fast"),
    "NaN step": lambda: training.gd(float("nan")),
    "a number as a projection": lambda: training.projgd(eta=0.1, projection=3),
    "a model's class": lambda: train(model=arda2026.PooledAttention),
    "no settings": lambda: training.TrainConfig.of(None),
    "sharpen nothing": lambda: theory.sharpen(None),
    "recheck a number": lambda: theory.recheck(3),
    "compare a name": lambda: theory.compare("arda2026"),
    "results in a number": lambda: lab.Store(3),
    "a lemma that is a number": lambda: theory.lemma(x=theory.Reals(2))(3),
    "batch of nothing": lambda: training.sgd(0.1, batch_size=0),
    "radius below zero": lambda: arda2026.omega(-1, 1, 1),
    "radius NaN": lambda: arda2026.omega(float("nan"), 1, 1),
    "model without heads": lambda: arda2026.PooledAttention(d=2, m=0),
    "model without features": lambda: arda2026.PooledAttention(d=0, m=4),
    "heads as words": lambda: arda2026.PooledAttention(d=2, m="many"),
    "unknown activation": lambda: arda2026.PooledAttention(d=2, m=4, activation="rleu"),
    "odd pairs": lambda: arda2026.paired(arda2026.PooledAttention(d=2, m=3), seed=0),
    "start of another model": lambda: arda2026.paired(OTHER, seed=0),
    "negative seed": lambda: arda2026.paired(MODEL, seed=-1),
    "teacher without tokens": lambda: arda2026.TransportTeacher(T=0, d=2),
    "teacher without a pool": lambda: arda2026.TransportTeacher(T=3, d=2, pool=0),
    "no samples": lambda: arda2026.TransportTeacher(T=3, d=2, pool=4).sample(n=0, seed=0),
    "unknown field": lambda: config(widht=8),
    "width as a word": lambda: config(width="wide"),
    "width beyond all": lambda: config(width=10**30),
    "unknown model": lambda: config(model="arda2027"),
    "claim as a number": lambda: theory.judge(3, None),
    "claim by a wrong name": lambda: theory.judge("arda2026/lemma-99", None),
    "instance as a number": lambda: theory.judge(CLAIM, 3),
    "instance of nothing": lambda: theory.judge(CLAIM, None),
    "field of no claim": lambda: CLAIM.instance(Z=3),
    "half an instance": lambda: CLAIM.instance(X=X[0]),
    "variant of no claim": lambda: theory.falsify(CLAIM, "wrong"),
    "budget below zero": lambda: theory.falsify(CLAIM, budget=-1),
    "budget as a list": lambda: theory.falsify(CLAIM, budget=[10]),
    "explain a number": lambda: theory.explain(3),
    "verify a claim about records": lambda: theory.verify("arda2026/lemma-3"),
    "verify with no boxes": lambda: theory.verify("arda2026/sigma-2-tanh", boxes=0),
    "audit a name": lambda: theory.audit("arda2026"),
    "audit surely": lambda: theory.audit(config(), delta=0.0),
    "recheck nothing": lambda: theory.recheck("nowhere.json"),
    "compare by more than all": lambda: theory.compare({}, share=3),
    "compare to less than nothing": lambda: theory.compare({}, loss=-1.0),
    "kernel of another model": lambda: kernels.ntk(OTHER, START, X),
    "kernel of NaN": lambda: kernels.ntk(MODEL, START, NAN),
    "kernel with an unknown block": lambda: kernels.ntk(MODEL, START, X, frozen=("Q",)),
    "plan of no figure": lambda: lab.make_plan("nothing", "smoke"),
    "plan at no scale": lambda: lab.make_plan("arda2026/fig1", "tiny"),
    "plan with no option": lambda: lab.make_plan("arda2026/fig1", "smoke", None, {"a": "b"}),
    "seeds of no kind": lambda: lab.parse_seeds("5:x"),
    "a name of no model": lambda: core.papers.of_model("nobody"),
    "a name of no data": lambda: data.data_models["nothing"],
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_bad_call_says_what_is_wrong(name: str):
    with pytest.raises(BadArgument) as caught:
        CALLS[name]()
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) < 900
    assert caught.value.fix

    def again() -> None:
        with pytest.raises(BadArgument):
            CALLS[name]()

    assert takes(again) < SECONDS
