"""Which tests are likely to concern a source file, by the words that both use."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping

OWN = 4.0
"""How much more a word of the file's own name, or of the function's, weighs than another."""
BESIDE = 2.0
"""How much likelier a test in the folder of tests that mirrors the file's is."""
OF_EVERY_CLAIM = ("tests/papers/test_right_sides.py", "tests/theory/test_conformance.py")
"""Tests that run the claims of all papers and name none of them."""


def words(text: str) -> set[str]:
    """Its words of three letters and more, and names that are made of parts: lemma-6, eq_15."""
    names = re.findall(r"[A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+)+", text)
    return {*re.findall(r"[A-Za-z][A-Za-z0-9]{2,}", text), *(n.replace("-", "_") for n in names)}


class Likeness:
    """The words of tests, or files of them, by their names."""

    def __init__(self, tests: Mapping[str, str]) -> None:
        self.words = {
            name: words(f"{name[name.rfind('/', 0, name.find('.py')) :]} {text}")
            for name, text in tests.items()
        }
        spread = Counter(word for own in self.words.values() for word in own)
        self.weight = {word: math.log(len(tests) / count) for word, count in spread.items()}

    def likely(self, path: str, function: str, source: str) -> list[str]:
        """All of them, the likeliest for a change in this function of a source first."""
        above = path.rpartition("/")[0].removesuffix("/figures").removesuffix("/claims")
        folder = f"tests/{above}/"
        body, own = words(source), words(f"{path} {function}")

        def alike(test: str) -> float:
            shared = self.words[test] & (body | own)
            total = sum(self.weight[word] * (1 + OWN * (word in own)) for word in shared)
            beside = BESIDE if test.startswith(folder) else 1.0
            return beside * total / math.sqrt(1 + len(self.words[test]))

        ordered = sorted(self.words, key=lambda test: (-alike(test), test))
        every = [test for test in OF_EVERY_CLAIM if test in self.words] * path.startswith("papers/")
        return list(dict.fromkeys([*ordered[:1], *every, *ordered]))
