"""Results at the prompt, in notebooks and on paper; what people pass in and get back."""

from __future__ import annotations

import numpy as np
import optax
import pytest

from headcount import kernels, training
from headcount.core import BadArgument
from headcount.papers import arda2026
from headcount.training import TrainConfig

TEACHER = arda2026.TransportTeacher(T=3, d=2, pool=16, anchors=3)
CONFIG = TrainConfig(
    width=4,
    n=12,
    steps=6,
    eta=0.2,
    dtype="float64",
    record=("iterates",),
    record_every=1,
    data_options={"T": 3, "d": 2, "pool": 16, "anchors": 3},
)


@pytest.fixture(scope="module")
def problem():
    model = arda2026.PooledAttention(2, 4)
    return model, arda2026.paired(model, seed=0), *TEACHER.sample(12, seed=0)


@pytest.fixture(scope="module")
def run(problem):
    rule = training.projgd(0.2, arda2026.omega(3, 3, 3))
    options = {"dtype": "float64", "record": "iterates", "record_every": 1}
    return training.train(*problem, rule=rule, steps=6, seeds=None, **options)


def test_results_are_one_line_and_a_table(problem, run):
    model, params, x, _ = problem
    kernel = kernels.ntk(model, params, x)
    smallest = kernels.smallest_eigenvalue(kernel.total)
    margin = kernels.kernel_margin(np.eye(3), np.array([1.0, -1.0, 1.0]))
    for result, words in (
        (run, ("model=arda2026", "steps=6", "outcome=completed", " -> ")),
        (kernel, ("total=float64[12, 12]", "trace=", "blocks=c, U, W")),
        (smallest, ("lies in=[", "proved")),
        (margin, ("status=separable", "gamma=", "n=3")),
    ):
        text = repr(result)
        assert len(text) < 120
        assert "\n" not in text
        assert text.startswith(type(result).__name__ + "(")
        for word in words:
            assert word in text
        html = result._repr_html_()
        assert html.startswith("<table>")
        assert "<script" not in html
    assert "training loss: 0." in run._repr_html_()
    assert "eigenvalues, the largest first" in kernel._repr_html_()


def test_a_run_plots_itself(run):
    ax = run.plot()
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), run.loss)
    assert ax.get_yscale() == "log"
    assert ax.get_xlabel() == "step"


def test_activations_go_by_name(problem):
    named = arda2026.PooledAttention(2, 4, activation="tanh")
    assert named == problem[0]
    assert arda2026.IndRNN(2, 4, activation="sin").activation.name == "sin"
    assert arda2026.TransportTeacher(activation="erf").activation.name == "erf"
    with pytest.raises(BadArgument, match="give a name: tanh, erf"):
        arda2026.PooledAttention(2, 4, activation=np.tanh)


def test_an_optax_transformation_is_a_rule(problem):
    plain = training.train(*problem, rule=optax.sgd(0.1), steps=3)
    ours = training.train(*problem, rule=training.gd(0.1), steps=3)
    np.testing.assert_array_equal(plain.loss, ours.loss)
    with pytest.raises(BadArgument, match="is no update rule; for example"):
        training.train(*problem, rule="adam", steps=3)


def test_an_error_in_the_users_model_is_shown_as_theirs(problem):
    _, params, x, y = problem

    def mine(params, x):
        return params.c @ x  # shapes (4,) and (3, 2)

    with pytest.raises(TypeError) as caught:
        training.train(mine, params, x, y, rule=training.gd(0.1), steps=1)
    assert any("your own model mine" in note for note in caught.value.__notes__)
    with pytest.raises(BadArgument, match="do not fit PooledAttention"):
        training.train(problem[0], params, x[:, :, :1], y, rule=training.gd(0.1), steps=1)


def test_a_run_saved_from_python_can_be_read_by_the_audit(run, tmp_path):
    file = run.save(tmp_path / "run.nc", config=CONFIG)
    assert training.config_of_run(file) == CONFIG
    read = training.read_run(file)
    np.testing.assert_array_equal(read.loss[0], run.loss)
    twin = training.run_config(CONFIG)
    np.testing.assert_array_equal(read.loss[0], twin.loss)
    with pytest.raises(BadArgument, match="the run has steps = 6"):
        run.save(tmp_path / "other.nc", config=CONFIG.model_copy(update={"steps": 7}))
    assert not (tmp_path / "other.nc").exists()
