"""Facts about softmax weights behind wu2023, proved on their whole domain by `verify`."""

from typing import Any

from ...theory import Box, facts, lemma


@facts.named("wu2023/softmax-jacobian-two-tokens")
@lemma(p=Box(low=0, high=1))
def jacobian_of_two_tokens(p: Any) -> tuple[Any, Any]:
    """The Jacobian diag(p) - p p^T of two weights has norm 2 p (1 - p) <= 1/2."""
    return 2 * p * (1 - p), 0.5


@facts.named("wu2023/softmax-length-two-tokens")
@lemma(p=Box(low=0, high=1))
def length_of_two_weights(p: Any) -> tuple[Any, Any]:
    """1/2 <= |softmax|^2 for two tokens, Lemma 8 squared."""
    return 0.5, p**2 + (1 - p) ** 2


@facts.named("wu2023/softmax-length-three-tokens")
@lemma(p=Box(low=0, high=1), t=Box(low=0, high=1))
def length_of_three_weights(p: Any, t: Any) -> tuple[Any, Any]:
    """|softmax|^2 <= 1 for three tokens, Lemma 8 squared: weights p, (1 - p) t, (1 - p)(1 - t)."""
    return p**2 + (1 - p) ** 2 * (t**2 + (1 - t) ** 2), 1.0
