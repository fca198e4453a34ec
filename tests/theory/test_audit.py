"""The audit engine on a paper of three lines: hypotheses first, hardest instance, worst seed."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Float

from headcount.core import Array, BadArgument, papers
from headcount.theory import (
    Batch,
    Bound,
    Check,
    Claim,
    Family,
    Form,
    Hypothesis,
    Kind,
    Observed,
    Sides,
    ask,
    audit,
    claims,
    instance_class,
)
from headcount.theory.domain import NotFinite
from headcount.training import TrainConfig, run_config


@instance_class
@dataclass(frozen=True)
class Pair:
    """left <= right, where size is at most 1."""

    left: Float[Array, ""]
    right: Float[Array, ""]
    size: Float[Array, ""]


def make(**changes) -> Claim:
    values = {
        "id": "toy/claim",
        "title": "A toy",
        "kind": Kind.DETERMINISTIC,
        "equations": "(1)",
        "statement": "left <= right",
        "latex": "l\\le r",
        "sides": lambda i, variant: Sides(i.left, i.right),
        "naive": lambda num, data, variant: (data["left"], data["right"]),
        "families": (Family("pairs", lambda rng, n: Pair(*rng.normal(size=(3, n))), lambda i: i),),
        "variants": {"printed": Form("as printed")},
        "default": "printed",
        "hypotheses": (Hypothesis("size", lambda i: i.size, lambda num, data: data["size"]),),
    }
    return Claim(**{**values, **changes})


def pairs(*rows: tuple[float, float, float]) -> Batch:
    return Batch(Pair(*np.array(rows, float).T))


def judged(instances):
    """What an audit says of these instances."""
    return ask(make(), Observed(0, None, {Pair: instances}), "printed")


def test_the_hardest_instance_decides():
    verdict = judged(pairs((1, 10, 0), (9, 10, 0), (5, 10, 0)))
    assert verdict.outcome == "holds"
    assert verdict.ratio == pytest.approx(0.9)
    assert judged(pairs((1, 10, 0), (11, 10, 0))).outcome == "violated"


def test_only_instances_inside_the_hypotheses_count_and_the_others_are_mentioned():
    verdict = judged(pairs((1, 10, 0), (99, 10, 7)))
    assert (verdict.outcome, verdict.lhs) == ("holds", 1)
    assert "1 of 2 instances are outside its hypotheses" in verdict.message
    nowhere = judged(pairs((1, 10, 5), (99, 10, 7)))
    assert nowhere.outcome == "not applicable"
    assert np.isnan(nowhere.rhs)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_cannot_be_evaluated_is_inconclusive_but_hides_no_violation(bad):
    alone = judged(pairs((bad, 10, 0), (1, 10, 0)))
    assert alone.outcome == "inconclusive"
    assert "left side is" in alone.message
    both = judged(pairs((bad, 10, 0), (11, 10, 0)))
    assert both.outcome == "violated"
    nothing = judged(pairs((bad, 1, 0), (bad, 2, 0)))
    assert nothing.outcome == "inconclusive"


def test_a_list_of_instances_is_judged_like_a_batch():
    batch = pairs((1, 10, 0), (9, 10, 0))
    assert judged(list(batch)) == judged(batch)


def against(lhs: float, rhs: float, *, trivial=None, checks=(), conditions=(), **changes):
    def seen(asked, variant, answer):
        assert asked in ("a setting", subject)
        assert variant == "printed"
        return answer

    subject = Observed(0, "a setting", {})
    claim = make(
        families=(),
        hypotheses=(),
        measured=lambda subject: seen(subject, "printed", lhs),
        bound=lambda setting, variant: seen(setting, variant, Bound(rhs, {"k": 2.0}, trivial)),
        requires=lambda setting, variant: seen(setting, variant, checks),
        conditions=lambda subject, variant: seen(subject, variant, conditions),
        **changes,
    )
    return ask(claim, subject, "printed")


def test_a_right_side_of_a_setting_needs_its_hypotheses():
    assert against(1, 2).outcome == "holds"
    assert against(3, 2).outcome == "violated"
    failing = Check("radii", 3.0, 1.0)
    for given in ({"checks": (failing,)}, {"conditions": (failing,)}):
        verdict = against(1, 2, **given)
        assert verdict.outcome == "not applicable"
        assert verdict.message == "radii: 3 where at most 1 is allowed"
        assert np.isnan(verdict.rhs)


def test_a_high_probability_bound_may_be_exceeded_by_one_run():
    verdict = against(3, 2, kind=Kind.HIGH_PROBABILITY)
    assert verdict.outcome == "inconclusive"
    assert "probability" in verdict.message


@pytest.mark.parametrize(("lhs", "rhs"), [(np.nan, 1), (1, np.nan), (1, np.inf), (np.inf, 1)])
def test_numbers_that_are_not_finite_are_inconclusive(lhs, rhs):
    assert against(lhs, rhs).outcome == "inconclusive"


def test_vacuous_means_not_below_what_is_known_without_the_claim():
    assert against(1, 5, trivial=5.0).outcome == "holds vacuously"
    assert against(1, 5, trivial=5.1).outcome == "holds"
    assert against(6, 5, trivial=4.0).outcome == "violated"


def test_a_scaled_bound_is_scaled_in_an_audit_too():
    claim = make(families=(), measured=lambda s: 1.0, bound=lambda s, v: Bound(2.0), hypotheses=())
    subject = Observed(0, None, {})
    assert ask(claim.with_bound_scaled(0.4), subject, "printed").outcome == "violated"
    assert ask(claim.with_bound_scaled(0.6), subject, "printed").outcome == "holds"


def test_printed_numbers_never_contradict_the_verdict():
    message = against(0.17151, 0.17152).message
    left, right = (float(word) for word in message.split(":")[0].split() if word[0] == "0")
    assert left < right
    assert "rounding" in against(1.0 + 1e-12, 1.0).message
    assert "1 + 1.9" in against(1.0 + 2e-9, 1.0).message
    assert against(1.0 + 2e-9, 1.0).outcome == "violated"


def of_toys(monkeypatch, subject):
    """Every model is one of the paper "toy", with the recipe that it has."""
    ours = type(papers).of_model
    toy = functools.partial(replace, key="toy", subject=subject, slack=None)
    monkeypatch.setattr(type(papers), "of_model", lambda self, model: toy(ours(self, model)))


@pytest.fixture
def toy_paper(monkeypatch):
    """A paper whose audit looks at a seed's own number."""

    def subject(config, seed, *, delta, progress=None):
        offered = {Pair: [Pair(*(np.asarray(float(v)) for v in (seed, 10, 0)))]}
        return Observed(seed, SimpleNamespace(), offered, {"found": {"seed": seed}}, "a note")

    monkeypatch.setitem(globals(), "_SUBJECT", subject)
    of_toys(monkeypatch, f"{__name__}:_SUBJECT")
    monkeypatch.setattr(type(claims), "of_paper", lambda self, key: [make()])


def test_an_audit_asks_every_seed_and_keeps_what_the_subject_found(toy_paper):
    report = audit(TrainConfig.of({"seeds": (3, 8, 1)}))
    assert report.verdicts[0].lhs == 8
    assert report.findings == {"found": {"seed": 3}}
    assert report.notes == ("a note",)
    assert not report.violated
    assert audit(TrainConfig.of({"seeds": (3, 11)})).violated


def _at_most(steps: int, asked: list[tuple[int, float]]):
    """A subject whose numbers are finite up to so many steps."""

    def subject(config, seed, *, delta, progress=None):
        asked.append((config.steps, config.step_size))
        if config.steps > steps:
            raise NotFinite("instance", "Pair", "has entries that are not finite", fix="train less")
        offered = {Pair: [Pair(*(np.asarray(float(v)) for v in (seed, 10, 0)))]}
        return Observed(seed, SimpleNamespace(), offered)

    return subject


@pytest.mark.parametrize(("finite", "steps"), [(5, 5), (4, 3), (1, 1)])
def test_of_a_run_that_diverges_the_steps_before_are_judged(toy_paper, monkeypatch, finite, steps):
    """wu2023's encoder with a step of 30 has a finite loss up to step 5; squares may have less."""
    asked = []
    monkeypatch.setitem(globals(), "_SUBJECT", _at_most(finite, asked))
    small = {"model": "wu2023", "n": 4, "width": 8, "eta": 30.0, "steps": 9, "seeds": (2, 0)}
    config = TrainConfig.of(small)
    first = np.min(run_config(config.model_copy(update={"dtype": "float64"})).diverged_at)
    assert first == 6
    report = audit(config)
    assert report.verdicts[0].outcome == "holds"
    assert asked[0] == (9, 30.0)
    assert asked[-1] == (steps, 30.0)
    assert report.seeds == (2, 0)
    (note,) = report.notes
    assert note.endswith(f"diverges at step {first}: the claims are asked about the first {steps}")


def test_a_run_of_which_not_one_step_is_finite(toy_paper, monkeypatch):
    monkeypatch.setitem(globals(), "_SUBJECT", _at_most(0, []))
    config = TrainConfig.of({"model": "wu2023", "n": 4, "width": 8, "eta": 30.0, "steps": 9})
    with pytest.raises(BadArgument, match=r"eta.*30.0.*makes the run diverge"):
        audit(config)


def test_data_that_a_subject_does_not_take_are_refused(toy_paper):
    with pytest.raises(BadArgument, match="not used by the audit of toy"):
        audit(TrainConfig.of({}), data=SimpleNamespace())


def test_a_run_that_a_subject_does_not_take_is_trained_again(toy_paper):
    report = audit(TrainConfig.of({"seeds": (3, 8)}), run=SimpleNamespace())
    assert report.verdicts[0].lhs == 8
    again = "the audit of toy reads no runs: trained again from its configuration"
    assert report.notes == (again, "a note")


def test_a_stored_run_that_diverges_is_trained_again_up_to_there(toy_paper, monkeypatch):
    passed, short = [], _at_most(5, [])

    def subject(config, seed, *, delta, run, progress=None):
        passed.append(run)
        return short(config, seed, delta=delta)

    monkeypatch.setitem(globals(), "_SUBJECT", subject)
    given = SimpleNamespace()
    config = TrainConfig.of({"model": "wu2023", "n": 4, "width": 8, "eta": 30.0, "steps": 9})
    report = audit(config, run=given)
    assert passed == [given, None]
    assert report.notes[0].endswith("the first 5, trained again")


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2.0])
def test_delta_must_be_a_probability(delta):
    with pytest.raises(BadArgument, match="delta"):
        audit(TrainConfig.of({}), delta=delta)


def test_a_paper_without_a_subject_says_so(monkeypatch):
    of_toys(monkeypatch, None)
    with pytest.raises(BadArgument, match="has no subject"):
        audit(TrainConfig.of({}))


def test_arrays_in_a_batch_are_split_when_asked_for():
    batch = pairs((1, 2, 3), (4, 5, 6))
    assert len(batch) == 2
    assert float(batch[1].right) == 5
    assert len(list(batch)) == 2
    assert replace(batch[0], left=jnp.ones(())).left == 1
