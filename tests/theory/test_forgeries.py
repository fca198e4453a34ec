"""No forged certificate is proved: every field of every shipped one altered, and known forgeries.

A proof may only be given where an oracle of another kind (mpmath at 60 digits on the slow twin)
agrees that the hypotheses hold and the left side exceeds the right.
"""

import copy
import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.core import BadArgument, stream
from headcount.theory import Kind, certify, claims, recheck, shipped_certificates
from headcount.theory._certificate import certificate_from_json
from headcount.theory._pytree import arrays_of
from headcount.theory._slow_sides import slow_checks, slow_sides
from headcount.theory.slow import precise

SHIPPED = {path.stem: json.loads(path.read_text()) for path in shipped_certificates()}
EXAMPLES = 60
"""Alterations tried for each shipped certificate."""


def violates(content: dict[str, Any]) -> bool:
    """The oracle: hypotheses hold and lhs > rhs, in mpmath."""
    certificate = certificate_from_json(content)
    claim, num = claims[certificate.claim], precise(60)
    checks = slow_checks(claim, num, certificate.instance, certificate.variant)
    if not all(check.value <= check.limit for check in checks):
        return False
    left, right = slow_sides(claim, num, certificate.instance, certificate.variant)
    if claim.kind is Kind.IDENTITY:
        return any(abs(x - y) > 1e-40 for x, y in zip(left, right, strict=True))
    return any(x > y for x, y in zip(left, right, strict=True))


def status(content: dict[str, Any]) -> str:
    """What recheck says; "refused" where the file is not even read."""
    try:
        return str(recheck(certificate_from_json(content)).status)
    except BadArgument:
        return "refused"


VALUES = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True).map(repr),
    st.sampled_from(["0.0", "-1.0", "1.0", "2.0", "1e15", "-1e-300", "nan", "inf", "x", None]),
    st.integers(-3, 10**15).map(str),
    st.lists(st.integers(), max_size=2),
)


@st.composite
def alterations(draw: Any, content: dict[str, Any]) -> dict[str, Any]:
    """The file with one of its fields, or one entry of it, replaced."""
    changed = copy.deepcopy(content)
    field = draw(st.sampled_from(sorted(changed)))
    value = changed[field]
    if isinstance(value, dict) and value:
        name = draw(st.sampled_from(sorted(value)))
        inner = value[name]
        if isinstance(inner, dict) and inner.get("values"):
            index = draw(st.integers(0, len(inner["values"]) - 1))
            inner["values"][index] = draw(VALUES)
        else:
            value[name] = draw(VALUES)
    elif field == "claim":
        changed[field] = draw(st.sampled_from(list(claims)))
    elif field == "variant":
        changed[field] = draw(st.sampled_from(list(claims[content["claim"]].variants)))
    else:
        changed[field] = draw(VALUES)
    return changed


@pytest.mark.parametrize("stem", SHIPPED)
def test_no_altered_certificate_is_proved_unless_it_is_true(stem: str) -> None:
    @settings(max_examples=EXAMPLES, deadline=None, database=None, derandomize=True)
    @given(alterations(SHIPPED[stem]))
    def altered(content: dict[str, Any]) -> None:
        if content.get("kind") == "frequency" or status(content) != "proved":
            return
        assert violates(content), content

    altered()


@functools.cache
def honest(claim_id: str) -> dict[str, Any]:
    """A true claim's instance in the form of a certificate, with its honest numbers."""
    claim = claims[claim_id]
    instance = claim.families[0].sample(stream(7, "forgery", claim_id))
    return json.loads(json.dumps(certify(claim, instance, claim.default).to_json()))


def forged(claim_id: str, **fields: Any) -> dict[str, Any]:
    """The honest file with arrays replaced and a ratio of 2 claimed."""
    content = copy.deepcopy(honest(claim_id))
    for name, value in fields.items():
        if isinstance(value, str):
            content["instance"][name] = value
            continue
        array = np.asarray(value, dtype=float)
        old = np.asarray(content["instance"][name]["values"], dtype=float)
        shape = content["instance"][name]["shape"]
        if array.size == 1:
            array = np.full(shape, float(array))
        assert array.size == old.size
        content["instance"][name]["values"] = [repr(float(v)) for v in array.ravel()]
    return content


RUN_CLAIMS = ["arda2026/theorem-1", "arda2026/eq-44", "arda2026/theorem-1-average"]
FORGERIES: list[tuple[str, dict[str, Any]]] = [
    *((claim, {"c0": 1000.0}) for claim in RUN_CLAIMS),
    ("arda2026/proposition-1", {"c0": -1000.0}),
    *((claim, {"nu": [-1.0, 1.0, 1.0]}) for claim in RUN_CLAIMS),
    ("arda2026/lemma-3", {"rho": [-1.0, 1.0, 1.0]}),
    ("arda2026/lemma-6a", {"rho": [-1.0, 1.0, 1.0]}),
    ("arda2026/lemma-6b", {"nu": [1.0, 1.0, -1.0]}),
    ("arda2026/lemma-3", {"activation": "-1*tanh(1*x)"}),
    ("arda2026/fact-3", {"activation": "-1*tanh(1*x)"}),
    ("arda2026/subgaussian-tail", {"level": -1.0}),
    ("arda2026/fact-4", {"t": -1.0}),
]


@pytest.mark.parametrize(("claim", "fields"), FORGERIES, ids=str)
def test_a_known_forgery_of_a_true_claim_is_not_proved(claim: str, fields: dict[str, Any]) -> None:
    content = forged(claim, **fields)
    for ratio in ("2.0", "inf", "nan"):
        content["claimed"]["ratio"] = ratio
        assert status(content) in ("refuted", "refused"), fields


def test_a_nan_in_the_first_entry_is_refused() -> None:
    content = honest("arda2026/lemma-3")
    content = copy.deepcopy(content)
    content["instance"]["dc"]["values"][0] = "nan"
    assert status(content) in ("refuted", "refused")


def test_cancellation_in_float64_proves_nothing() -> None:
    """Unit tokens that float64 makes look longer than they are (Fact 3)."""
    content = copy.deepcopy(honest("arda2026/fact-3"))
    fields = arrays_of(claims["arda2026/fact-3"].families[0].sample(stream(7, "x")))
    if fields["X"].shape[-1] != 2:
        pytest.fail("the family's dimension changed")
    content["instance"]["X"] = {
        "shape": [2, 2],
        "values": ["0.7", "-0.699999999", "-0.7", "0.699999999"],
    }
    content["instance"]["U"]["values"] = ["1.0", "1.0"]
    assert status(content) != "proved"


@pytest.mark.parametrize(
    ("field", "value"),
    [("repetitions", "1e15"), ("repetitions", "inf"), ("exceedances", "-4"), ("repetitions", "0")],
)
def test_a_frequency_that_asks_for_endless_work_is_refused(field: str, value: str) -> None:
    content = copy.deepcopy(SHIPPED["arda2026-lemma-5-printed"])
    content["claimed"][field] = value
    assert status(content) == "refused"


@pytest.mark.parametrize(
    ("name", "value"), [("m", 1e12), ("m", 0), ("delta", 0), ("delta", float("inf")), ("T", 0)]
)
def test_a_case_outside_its_domain_is_not_counted(name: str, value: float) -> None:
    content = copy.deepcopy(SHIPPED["arda2026-lemma-5-printed"])
    content["case"][name] = value
    assert status(content) in ("refuted", "refused")


def test_every_shipped_certificate_is_proved() -> None:
    for path in shipped_certificates():
        result = recheck(Path(path))
        assert result.status == "proved", (path.name, result.message)
        if result.proof is not None:
            assert result.proof.twin.status == result.proof.traced.status == "proved"
