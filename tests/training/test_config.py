"""Configurations: defaults of the papers, options that are checked, files that are read."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from headcount.core import MEAN_SQUARED, BadArgument, losses, papers
from headcount.models import initialisations
from headcount.training import (
    TrainConfig,
    build,
    build_problem,
    config_of_run,
    optimisers,
    read_run,
    recipe_of,
    run_config,
)

MODELS = [name for _, paper in papers.items() for name in paper.models]
SMALL = {"width": 4, "n": 6, "steps": 3}
TEACHER = {"data_options": {"T": 3, "d": 2, "pool": 8, "anchors": 2}}


@pytest.mark.parametrize("model", MODELS)
def test_every_model_trains_with_its_papers_defaults(model):
    small = TEACHER if recipe_of(model).data == "transport-teacher" else {}
    config = TrainConfig.of({"model": model, **SMALL, **small})
    assert config.optimiser in optimisers
    assert config.loss in losses
    assert config.init in initialisations
    run = run_config(config)
    assert run.outcomes == ("completed",)
    assert run.final_loss < run.loss[0]


@pytest.mark.parametrize("loss", ["half-squared-sum", "mean-squared"])
def test_the_default_step_of_wu2023_is_one_descent_whichever_loss_is_written(loss):
    """gamma = 1 on the mean squared error is 2/n on (1/2)|f - y|^2: the same iterates."""
    run = run_config(
        TrainConfig.of(
            {"model": "wu2023", **SMALL, "n": 5, "loss": loss, "dtype": "float64"}
            | {"data_options": {"T": 2, "d": 3}}
        )
    )
    reference = run_config(
        TrainConfig.of(
            {"model": "wu2023", **SMALL, "n": 5, "loss": "mean-squared", "dtype": "float64"}
            | {"data_options": {"T": 2, "d": 3}, "eta": 1.0}
        )
    )
    np.testing.assert_allclose(run.params.W_V, reference.params.W_V, rtol=1e-12)


def test_one_seed_has_no_axis_unless_it_was_named(tmp_path):
    plain = TrainConfig.of({**SMALL, **TEACHER, "n_val": 2, "record": ("validation",)})
    named = TrainConfig.of(
        {**SMALL, **TEACHER, "n_val": 2, "record": ("validation",), "seeds": [0]}
    )
    for config in (named, plain.naming_seeds(), plain.model_copy(update={"seeds": (0,)})):
        assert run_config(config).loss.shape == (1, 3)
    assert plain == named
    run, batched = run_config(plain, built=build(plain)), run_config(named)
    assert run.loss.shape == (3,)
    assert run.single
    np.testing.assert_array_equal(run.loss, batched.loss[0])
    np.testing.assert_array_equal(
        run.records["validation_loss"], batched.records["validation_loss"][0]
    )
    assert run.settings == batched.settings
    stored = [read_run(r.save(tmp_path / "run.nc")) for r in (run, batched)]
    assert [s.loss.shape for s in stored] == [(1, 3), (1, 3)]
    assert build(plain).x.shape[0] == build_problem(plain).y.shape[0] == 1


def test_a_loss_may_be_its_object_if_a_name_finds_it():
    assert TrainConfig.of({"loss": MEAN_SQUARED}).loss == "mean-squared"
    assert TrainConfig(loss=MEAN_SQUARED) == TrainConfig(loss="mean-squared")
    mine = dataclasses.replace(MEAN_SQUARED, weight=lambda n: 1.0)
    with pytest.raises(BadArgument, match="loss = 'mean-squared': is not registered"):
        TrainConfig.of({"loss": mine})


def test_given_values_win_over_the_papers_and_defaults_are_no_given_values():
    config = TrainConfig.of({"optimiser": "gd", "loss": None, "steps": 25})
    assert (config.rho, config.loss, config.step_size) == (None, "mean-squared", 0.2)
    assert config.model_dump(exclude_unset=True) == {"optimiser": "gd", "steps": 25}
    assert TrainConfig.of({"steps": 100}).rho == (3.0, 3.0, 3.0)
    explicit = TrainConfig.of({"init": "paired", "data": "transport-teacher"})
    assert explicit.fingerprint == TrainConfig.of({}).fingerprint


BAD = {
    "model": ({"model": "arda2025"}, "did you mean arda2026"),
    "field": ({"widht": 3}, "widht = 3: is no setting; did you mean width"),
    "type": ({"width": "wide"}, "width"),
    "model option": ({"model_options": {"pooling": "sum"}}, "its options are activation, query"),
    "init option": ({"init_options": {"gamma": 1.0}}, "it has no options"),
    "data option": ({"data_options": {"L": 1}}, "its options are T, d"),
    "init": ({"init": "pared"}, "did you mean"),
    "init of another model": ({"init": "paired-indrnn"}, "use init=paired"),
    "gamma": ({"model": "indrnn", "init_options": {"gamma": -1.0}}, "gamma = -1.0"),
    "residual": ({"model": "wu2023", "model_options": {"residual": "yes"}}, "residual = 'yes'"),
    "rho": ({"optimiser": "gd", "rho": (3, 3, 3)}, "which does not project"),
    "projection": ({"model": "wu2023", "optimiser": "projgd"}, "has no projection"),
    "no radii": ({"model": "indrnn", "optimiser": "projgd"}, "is needed to project"),
    "seeds": ({"seeds": ()}, "is empty"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_one_message_that_names_it(case):
    values, message = BAD[case]
    with pytest.raises(BadArgument, match=message):
        build(TrainConfig.of({**SMALL, **values}))


def test_a_run_file_gives_its_configuration_back_and_an_old_one_is_refused(tmp_path):
    config = TrainConfig.of({"model": "indrnn", **SMALL, "init_options": {"gamma": 0.5}})
    run = run_config(config)
    assert config_of_run(run.save(tmp_path / "run.nc")) == config
    run.settings["config"] = '{"model": "indrnn", "gamma": 0.5, "activation": "tanh"}'
    old = run.save(tmp_path / "old.nc")
    with pytest.raises(BadArgument, match="with the fields activation, gamma; train it again"):
        config_of_run(old)
