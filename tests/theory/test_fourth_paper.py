"""What stood in the way of a fourth paper, written by somebody from outside."""

import numpy as np
import pytest

from headcount.core import BadArgument
from headcount.theory import Outcome, Positive, Record, Statements, Table, claims, judge

state = Statements("jones2031", Table)


class Losses(Record):
    """The losses of a run of two steps, seen by an audit."""

    eta = Positive()

    @property
    def symbols(self):
        """Nothing but the run itself."""
        return self


@pytest.mark.parametrize(
    ("trivial", "outcome"),
    [((1.0, 3.0), Outcome.HOLDS), ((1.0, 2.0), Outcome.VACUOUS), ((9.0, 9.0), Outcome.HOLDS)],
)
def test_a_rival_may_have_an_entry_for_each_of_the_sides(monkeypatch, trivial, outcome):
    """Vacuous is a bound that is below its rival nowhere."""
    monkeypatch.setattr(claims, "add", lambda claim: claim)

    @state.claim(
        "rival",
        "Losses",
        where="Th. 2",
        on=Losses,
        says="L_s",
        trivial=lambda k: np.array(trivial),
    )
    def losses(run):
        """Each loss is at most 2."""
        return run.loss, np.array([2.0, 2.0])

    seen = Losses.seen(measured={"eta": 0.1}, loss=np.array([1.0, 0.5]))
    assert judge(losses, seen).outcome == outcome


def test_a_field_without_a_space_is_told():
    with pytest.raises(BadArgument, match="field eta that is annotated: it needs a space"):
        type("Run", (Record,), {"__annotations__": {"eta": float}})
