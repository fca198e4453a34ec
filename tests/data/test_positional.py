"""Tokens with fixed positional channels: their two free numbers, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from headcount.core import BadArgument
from headcount.data import PositionalTokens
from headcount.papers.arda2026 import ARWindows


@pytest.mark.parametrize("normalise", [True, False])
def test_a_window_is_its_values_and_scales_times_the_channels(normalise: bool) -> None:
    law = ARWindows(L=4, normalise_tokens=normalise, pairs=3)
    x = law.sample(6, 2).x
    form = law.token_form
    xi, s = form.split(x)
    again = np.concatenate([xi[..., None], s[..., None] * form.channels], axis=-1)
    np.testing.assert_allclose(again, x, rtol=1e-14, atol=1e-14)
    assert (s.max() < 0.6) if normalise else np.allclose(s, 1, rtol=1e-14)
    form.check("x", x)
    form.check("x", x.astype(np.float32))


def test_tokens_without_channels_have_no_form() -> None:
    assert ARWindows(L=2, pairs=0).token_form is None


def test_other_tokens_are_refused() -> None:
    form = PositionalTokens(5, 3)
    x = ARWindows(L=4, pairs=3).sample(6, 2).x
    x[1, 3, 4] += 1e-9
    with pytest.raises(BadArgument, match=r"e-10 away from tokens"):
        form.check("x", x)
    with pytest.raises(BadArgument, match="shape"):
        form.check("x", x[:, :4])
