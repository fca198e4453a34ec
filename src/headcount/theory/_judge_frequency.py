"""Verdicts on high-probability claims: how often the inequality fails, against what is allowed."""

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool

from ..core import Array, BadArgument, check_count, float64, stream
from ..core._rounding import round_down, round_up
from ._asked import claim_of
from ._claim import Claim, Instance, generator
from ._compilation import quick_compilation
from ._frequency import Interval, frequency_of
from ._verdict import Outcome, Verdict


@functools.lru_cache(maxsize=128)
def _counter(claim: Claim, variant: str) -> Any:
    experiment = claim.experiment
    assert experiment is not None

    def exceeds(instance: Instance) -> Bool[Array, ""]:
        sides = experiment.sides(instance, variant)
        return jnp.asarray(sides.lhs > claim.factor * sides.rhs)

    return jax.jit(jax.vmap(exceeds), compiler_options=quick_compilation())


def judge_frequency(
    claim: Claim | str,
    case: Mapping[str, Any],
    variant: str | None = None,
    *,
    repetitions: int = 2000,
    seed: int = 0,
) -> Verdict:
    """How often the inequality of a high-probability claim fails over seeds, against delta.

    Where the probability itself is known it is used: nothing is drawn then.
    """
    claim = claim_of(claim)
    name = claim.variant(variant)
    check_count("repetitions", repetitions)
    if claim.experiment is None:
        raise BadArgument("claim", claim.id, "is not tested by frequency", fix="use judge")
    problem = claim.experiment.case_problem(case)
    if problem is not None:
        raise BadArgument("case", dict(case), problem, fix="see the claim's own cases")
    delta = claim.experiment.delta(case)
    exact = claim.experiment.exact
    interval = exact(case, name, claim.factor) if exact is not None else None
    if interval is not None:
        return judge_exactly(claim, name, interval, delta)
    drawn = claim.experiment.draw(case, generator(stream(seed, "frequency", claim.id)), repetitions)
    with float64():
        exceeded = np.asarray(_counter(claim, name)(drawn))
    result = frequency_of(int(exceeded.sum()), repetitions, delta)
    message = (
        f"failed {result.exceedances} times in {repetitions}: "
        f"[{round_down(result.interval.low)}, {round_up(result.interval.high)}] "
        f"against delta = {delta:g}"
    )
    return Verdict(
        claim.id,
        name,
        Outcome(result.outcome),
        message,
        lhs=result.rate,
        rhs=delta,
        ratio=result.rate / delta,
        frequency=result,
    )


def judge_exactly(claim: Claim, name: str, interval: Interval, delta: float) -> Verdict:
    """The verdict on a probability that was enclosed rather than estimated."""
    low, high = interval
    outcome = Outcome.HOLDS if high <= delta else Outcome.INCONCLUSIVE
    outcome = Outcome.VIOLATED if low > delta else outcome
    shown = f"[{round_down(low)}, {round_up(high)}]"
    message = f"fails with a probability in {shown} against delta = {delta:g}"
    return Verdict(claim.id, name, outcome, message, lhs=low, rhs=delta, ratio=low / delta)
