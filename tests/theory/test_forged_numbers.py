"""Every number that a certificate states must follow from what it holds, and it holds no others."""

from __future__ import annotations

import copy
import math

import pytest
from test_forgeries import HYPOTHESES, SHIPPED, STEP, status

FREQUENCIES = [stem for stem in SHIPPED if SHIPPED[stem]["kind"] == "frequency"]


@pytest.mark.parametrize("stem", FREQUENCIES)
@pytest.mark.parametrize("value", ["0.5", "1e9", "nan", "-1.0", "0.123"])
@pytest.mark.parametrize("name", ["delta", "low", "ratio", "seed"])
def test_every_number_of_a_frequency_must_be_right(stem: str, name: str, value: str) -> None:
    """Counts that are right do not excuse a delta, an interval or a ratio that is made up."""
    content = copy.deepcopy(SHIPPED[stem])
    content["claimed"][name] = value
    if (name, value) != ("seed", "1e9"):  # any whole number is a seed
        assert status(content) == "refuted"


@pytest.mark.parametrize("stem", FREQUENCIES)
def test_a_frequency_without_its_numbers_is_refuted(stem: str) -> None:
    for name in ("delta", "low", "ratio", "seed"):
        content = copy.deepcopy(SHIPPED[stem])
        del content["claimed"][name]
        assert status(content) == "refuted", name


def test_a_file_holds_nothing_of_the_other_kind_and_nothing_besides() -> None:
    frequency = SHIPPED[FREQUENCIES[0]]
    assert status({**STEP, "case": frequency["case"]}) == "refused"
    for name in ("instance", "hypotheses"):
        assert status({**frequency, name: STEP[name]}) == "refused", name
    for content in (STEP, frequency):
        assert status({**content, "claimed": {**content["claimed"], "proved": "1.0"}}) == "refused"
    for change in ({"margin": 5.0}, {"margin": math.nan}, {"proved": True}):
        changed = [{**HYPOTHESES[0], **change}, *HYPOTHESES[1:]]
        assert status({**STEP, "hypotheses": changed}) == "refused", change
