"""No forged certificate is proved: every field of every shipped one altered, and known forgeries.

A proof may only be given where an oracle of another kind (mpmath at 60 digits on the slow twin)
agrees that the hypotheses hold and the left side exceeds the right.
"""

import copy
import functools
import json
import tempfile
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.core import BadArgument, stream
from headcount.theory import (
    Certificate,
    Check,
    Kind,
    claims,
    read_certificate,
    recheck,
    shipped_certificates,
)
from headcount.theory.domain import arrays_of, instance_from
from headcount.theory.slow import FLOATS, precise
from headcount.theory.slow_sides import slow_checks, slow_sides

SHIPPED = {path.stem: json.loads(path.read_text()) for path in shipped_certificates()}
EXAMPLES = 60
"""Alterations tried for each shipped certificate."""


def certificate_of(content: dict[str, Any]) -> Certificate:
    """What is read from a file with this content."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(content, file)
        file.flush()
        return read_certificate(Path(file.name))


def shortened(values: Any) -> Any:
    """30 bits of every entry, rounded towards zero."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.trunc(mantissa * 2**30) / 2**30, exponent)


def violates(content: dict[str, Any]) -> bool:
    """The oracle: hypotheses hold and lhs > rhs, in mpmath."""
    certificate = certificate_of(content)
    claim, num = claims[certificate.claim], precise(60)
    checks = slow_checks(claim, num, certificate.instance, certificate.variant)
    if not all(check.value <= check.limit for check in checks):
        return False
    if claim.naive is None:
        assert claim.instance_class is not None
        point = instance_from(claim.instance_class, certificate.instance)
        sides = claim.evaluate(point, certificate.variant)
        left, right = (np.ravel(side).tolist() for side in np.broadcast_arrays(*sides[:2]))
    else:
        left, right = slow_sides(claim, num, certificate.instance, certificate.variant)
    if claim.kind is Kind.IDENTITY:
        return any(
            abs(x - y) > (1e-9 if claim.naive is None else 1e-40)
            for x, y in zip(left, right, strict=True)
        )
    return any(x > y for x, y in zip(left, right, strict=True))


def status(content: dict[str, Any]) -> str:
    """What recheck says; "refused" where the file is not even read."""
    try:
        return str(recheck(certificate_of(content)).status)
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
    """A true claim's instance in the form of a certificate, with its honest numbers.

    Rounded towards zero: a projected token may be an ulp too long, and a forgery must be rejected
    for what is forged.
    """
    claim = claims[claim_id]
    sample = claim.families[0].sample(stream(7, "forgery", claim_id))
    fields = arrays_of(jax.tree.map(shortened, sample))
    sides = [max(map(float, side)) for side in slow_sides(claim, FLOATS, fields, claim.default)]
    checks = [
        Check(check.name, float(check.value), float(check.limit))
        for check in slow_checks(claim, FLOATS, fields, claim.default)
    ]
    claimed = {"lhs": sides[0], "rhs": sides[1], "ratio": sides[0] / sides[1]}
    written = Certificate(claim_id, claim.default, "instance", claimed, fields, tuple(checks))
    return json.loads(json.dumps(written.to_json()))


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


@pytest.mark.parametrize("claim", ["arda2026/theorem-1", "arda2026/lemma-3", "arda2026/fact-3"])
def test_an_honest_file_of_a_true_claim_is_refuted_by_its_sides(claim: str) -> None:
    """So that the forgeries above are rejected for what is forged."""
    result = recheck(certificate_of(honest(claim)))
    assert result.status == "refuted"
    assert "does not exceed" in result.message


STEP = SHIPPED["arda2026-lemma-5-step-printed"]


def written(tmp_path: Path, text: str) -> str:
    """What recheck says about a file with this text."""
    file = tmp_path / "forged.json"
    file.write_text(text, encoding="utf-8")
    try:
        return str(recheck(file).status)
    except BadArgument:
        return "refused"


TEXT = json.dumps(STEP)
HYPOTHESES = STEP["hypotheses"]
TEXTS = {
    "as it is": (TEXT, "proved"),
    "nested too deeply": ("[" * 100_000, "refused"),
    "a note nested too deeply": (TEXT[:-1] + ', "x": ' + "[" * 9999 + "]" * 9999 + "}", "refused"),
    "a number too long to read": (
        TEXT.replace('"version": 1', '"version": 1' + "0" * 5000),
        "refused",
    ),
    "a name twice": (TEXT[:-1] + ', "variant": "corrected"}', "refused"),
    "an array twice": (TEXT.replace('"q": {', '"q": 1, "q": {'), "refused"),
    "an unknown field": (TEXT[:-1] + ', "proved": true}', "refused"),
    "version true": (json.dumps({**STEP, "version": True}), "refused"),
    "a note that is no text": (json.dumps({**STEP, "note": ["x"]}), "refused"),
    "each hypothesis twice": (json.dumps({**STEP, "hypotheses": HYPOTHESES * 2}), "refuted"),
    "no hypotheses": (json.dumps({**STEP, "hypotheses": []}), "refuted"),
    "hypotheses that fail": (
        json.dumps({**STEP, "hypotheses": [{**h, "holds": False} for h in HYPOTHESES]}),
        "refused",
    ),
    "nothing": ("", "refused"),
    "null": ("null", "refused"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_file_that_could_be_read_in_two_ways_is_refused(name: str, tmp_path: Path) -> None:
    text, expected = TEXTS[name]
    assert written(tmp_path, text) == expected


Q = STEP["instance"]["q"]
ARRAYS: dict[str, Any] = {
    "a string": "[1.0]",
    "a number": 3,
    "true": True,
    "true inside": {"shape": Q["shape"], "values": [True for _ in Q["values"]]},
    "nested values": {"shape": Q["shape"], "values": [[v] for v in Q["values"]]},
    "a dictionary of values": {"shape": Q["shape"], "values": {v: v for v in Q["values"]}},
    "a string of values": {"shape": [1], "values": "1"},
    "too many for the shape": {"shape": Q["shape"], "values": [*Q["values"], "0.0"]},
    "a shape of -1": {"shape": [-1], "values": Q["values"]},
    "a shape of floats": {"shape": [float(n) for n in Q["shape"]], "values": Q["values"]},
    "a shape of nothing": {"shape": [0], "values": []},
    "an endless shape": {"shape": [10**12], "values": []},
    "an overflow": {"shape": Q["shape"], "values": ["1e999" for _ in Q["values"]]},
    "a huge integer": {"shape": Q["shape"], "values": [10**400 for _ in Q["values"]]},
    "digits of another script": {"shape": Q["shape"], "values": ["\u0661" for _ in Q["values"]]},
    "an underscore": {"shape": Q["shape"], "values": ["1_0e-1" for _ in Q["values"]]},
    "minus zero": {"shape": Q["shape"], "values": ["-0.0" for _ in Q["values"]]},
    "denormal": {"shape": Q["shape"], "values": ["5e-324" for _ in Q["values"]]},
    "an ulp too long": {"shape": Q["shape"], "values": ["1.0000000000000002" for _ in Q["values"]]},
    "absent": None,
}


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_that_is_none_or_another_is_not_proved(name: str) -> None:
    content = copy.deepcopy(STEP)
    content["instance"]["q"] = ARRAYS[name]
    if ARRAYS[name] is None:
        del content["instance"]["q"]
    assert status(content) in ("refused", "refuted")


@pytest.mark.parametrize("claim", ["arda2026/theorem-1", "arda2026/proposition-1"])
@pytest.mark.parametrize("tau", [10**9, 150, 0, -1, True, 2.5, "3"])
def test_a_run_of_endless_or_impossible_length_is_refused_at_once(claim: str, tau: Any) -> None:
    content = copy.deepcopy(honest(claim))
    content["instance"]["tau"] = tau
    if claim == "arda2026/theorem-1" and tau == 150:
        content["instance"]["X"]["values"][0] = "nan"  # long, but not too long to be looked at
    assert status(content) == "refused"


def test_an_instance_too_large_to_be_rechecked_is_refused_at_once() -> None:
    content = copy.deepcopy(honest("arda2026/fact-1"))
    for name in ("z", "u"):
        content["instance"][name] = {"shape": [1500], "values": ["0.5"] * 1500}
    assert status(content) == "refused"


SCALES = ["1e308*tanh(1e308*x)", "0*tanh(1*x)", "1*tanh(-1*x)", "nan*tanh(1*x)", "inf*tanh(1*x)"]
SCALES += ["1*tanh(1e400*x)", "1*1*tanh(1*x)", "relu", "__import__('os')", "tanh\x00"]


@pytest.mark.parametrize("name", SCALES)
def test_an_activation_that_is_none_proves_nothing(name: str) -> None:
    content = copy.deepcopy(STEP)
    content["instance"]["activation"] = name
    assert status(content) in ("refused", "refuted")


@pytest.mark.parametrize(
    "change",
    [
        {"m": True},
        {"m": 2.0},
        {"m": 3},
        {"T": 10**9},
        {"nu_c": float("nan")},
        {"delta": "0.1"},
        {"activation": "-1*tanh(1*x)"},
        {"activation": ["tanh"]},
        {"policy": None},
        {"n": [3]},
        {"extra": 1},
    ],
    ids=str,
)
def test_a_case_with_a_wrong_entry_is_not_counted(change: dict[str, Any]) -> None:
    content = copy.deepcopy(SHIPPED["arda2026-lemma-5-printed"])
    content["case"].update(change)
    assert status(content) in ("refused", "refuted")


@pytest.mark.parametrize(
    ("field", "value"), [("variant", ["printed"]), ("kind", "proof"), ("claim", "arda2026/none")]
)
def test_a_name_that_is_none_is_refused(field: str, value: Any) -> None:
    assert status({**STEP, field: value}) == "refused"


def test_sides_that_differ_from_the_true_ones_are_refuted() -> None:
    for side in ("lhs", "rhs", "ratio"):
        for value in ("Infinity", "7.0", "-1.0"):
            claimed = {**STEP["claimed"], side: value}
            assert status({**STEP, "claimed": claimed}) == "refuted"


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
