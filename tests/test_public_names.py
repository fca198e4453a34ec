"""One name per idea in the public functions; a loss is a name or an object in all of them."""

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from inspect import isclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from headcount import core, data, explore, kernels, lab, models, report, theory, training
from headcount.core import losses, normal, stream
from headcount.papers import arda2026, deora2024, wu2023

PACKAGES = (core, models, data, training, kernels, lab)
OTHER_NAMES = {
    "start": "initial",
    "params0": "initial",
    "theta0": "initial",
    "every": "record_every",
    "val": "validation",
    "x_val": "validation",
}


def public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for package in PACKAGES:
        for name in dir(package):
            if not name.startswith("_") and inspect.isfunction(entry := getattr(package, name)):
                yield f"{package.__name__.rpartition('.')[2]}.{name}", entry


def test_public_functions_use_one_name_per_idea() -> None:
    found = {
        f"{name}({given}) is called {OTHER_NAMES[given]}"
        for name, function in public_functions()
        for given in inspect.signature(function).parameters
        if given in OTHER_NAMES
    }
    assert not found


N, T, D = 4, 3, 2
X = normal(stream(0, "x"), (N, T, D))
Y = np.array([1.0, -1.0, -1.0, 1.0])
ARDA, DEORA = arda2026.PooledAttention(D, 4), deora2024.MultiHeadAttention(T, D, 2)
INDRNN, WU = arda2026.IndRNN(D, 4), wu2023.Encoder(D, 3, 0.4, 0.5, "mean")


def shaped(model: Any) -> Any:
    """Parameters without structure."""
    leaves, tree = jax.tree.flatten(model.shapes(), is_leaf=lambda leaf: type(leaf) is tuple)
    drawn = [normal(stream(k, "p"), shape) for k, shape in enumerate(leaves)]
    return jax.tree.unflatten(tree, drawn)


def on_path(
    build: Callable[..., Any], model: Any, x: Any = X, y: Any = Y, **more: Any
) -> Callable[[Any], Any]:
    def value(loss: Any) -> Any:
        path = build(model, loss, **more)
        return path.loss_and_gradient(shaped(model), path.prepare(x, y))

    return value


LAW = arda2026.ARWindows(L=2, pairs=1)
K = np.array(X.reshape(N, -1) @ X.reshape(N, -1).T)
START = shaped(ARDA)
STACKED = jax.tree.map(lambda leaf: leaf[None], START)
CALLS: dict[str, Callable[[Any], Any]] = {
    "core.loss_of": lambda loss: core.loss_of(loss).pointwise(X[:, 0, 0], Y),
    "core.total": lambda loss: core.total(loss, X[:, 0, 0], Y),
    "papers.arda2026_path": on_path(arda2026.arda2026_path, ARDA, chunk=2),
    "papers.deora2024_path": on_path(deora2024.deora2024_path, DEORA, chunk=2),
    "papers.indrnn_path": on_path(arda2026.indrnn_path, INDRNN, chunk=2),
    "papers.wu2023_path": on_path(wu2023.wu2023_path, WU, chunk=2),
    "papers.positional_path": on_path(
        arda2026.positional_path, arda2026.PooledAttention(LAW.d, 4), *LAW.sample(N, 0), chunk=2,
        tokens=LAW.token_form,
    ),
    "training.into_chunks": lambda loss: training.into_chunks(X, Y, loss, 2).sample_weight,
    "training.generic_path": on_path(training.generic_path, ARDA, chunk=2),
    "training.naive_path": on_path(training.naive_path, ARDA),
    "training.gradient_path": on_path(training.gradient_path, ARDA, n=N, T=T),
    "training.train": lambda loss: training.train(
        ARDA, START, X, Y, rule=training.gd(0.1), steps=2, loss=loss
    ).loss,
    "training.replay": lambda loss: training.replay(
        ARDA, START, X, Y, STACKED, (lambda now: {"slope": now.loss.slope(now.outputs(), now.y)},),
        loss=loss,
    ),
    "kernels.kernel_flow": lambda loss: kernels.kernel_flow(K, Y, [0.0, 1.0], loss=loss).train,
    "kernels.kernel_descent": lambda loss: kernels.kernel_descent(
        K, Y, eta=0.1, steps=2, loss=loss
    ).train,
    "kernels.train_linearised": lambda loss: kernels.train_linearised(
        ARDA, START, X, Y, eta=0.1, steps=2, loss=loss
    ).train,
    "kernels.gauss_newton": lambda loss: kernels.hessian_extremes(
        kernels.gauss_newton(ARDA, loss, X, Y), START
    ).largest.value,
    "kernels.loss_function": lambda loss: kernels.loss_function(ARDA, loss, X, Y)(START),
}  # fmt: skip


def test_every_public_function_with_a_loss_is_called_here() -> None:
    with_loss = {
        name
        for name, function in public_functions()
        if "Loss"
        in str(getattr(inspect.signature(function).parameters.get("loss"), "annotation", ""))
    }
    assert with_loss == {name for name in CALLS if not name.startswith("papers.")}


@pytest.mark.parametrize("name", CALLS)
def test_a_loss_is_a_name_or_an_object(name: str) -> None:
    chosen = "half-squared-sum"
    by_name, by_object = CALLS[name](chosen), CALLS[name](losses[chosen])
    jax.tree.map(np.testing.assert_array_equal, by_name, by_object)
    with pytest.raises(core.BadArgument, match="did you mean half-squared-sum"):
        CALLS[name]("half-squared")


LAYERS = (*PACKAGES, theory, report, explore)
MOST_NAMES = 300
"""What only other layers need is imported from the module that defines it."""
ROOT = Path(__file__).parents[1]


def front_doors() -> list[tuple[str, str, Any]]:
    """(layer, name, object) of all that `from headcount.layer import name` promises."""
    doors = ((layer, ast.parse(Path(str(layer.__file__)).read_text())) for layer in LAYERS)
    shown = (
        (layer, alias.asname)
        for layer, tree in doors
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname is not None
    )
    return [(layer.__name__.split(".")[-1], name, getattr(layer, name)) for layer, name in shown]


def test_the_front_doors_are_small_and_every_name_is_explained_and_used() -> None:
    names = front_doors()
    assert len(names) <= MOST_NAMES
    functions = [entry for _, _, entry in names if inspect.isroutine(entry) or isclass(entry)]
    assert len(functions) > MOST_NAMES // 2
    assert not [entry for entry in functions if not inspect.getdoc(entry)]
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *ROOT.glob("tests/**/*.py")]
    pages += (ROOT / "src" / "headcount" / "cli" / "scaffolds").rglob("*.txt")  # shown by how-to.md
    words = set(re.findall(r"\w+", "\n".join(page.read_text() for page in pages)))
    assert not [f"{layer}.{name}" for layer, name, _ in names if name not in words]
