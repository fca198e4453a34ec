"""What the theorems alone ask for, as the report shows it where nothing was counted.

python -m tools.theory_counts    # a few minutes; writes src/headcount/papers/compare/theory
"""

from __future__ import annotations

from pathlib import Path

from headcount.cli import _everything

FOLDER = Path(__file__).parents[1] / "src" / "headcount" / "papers" / "compare" / "theory"
SIZE = {**_everything.SIZES["quick"], "seeds": [0]}
"""One seed: where a theorem depends on the drawn start, the others say nearly the same."""


def main() -> None:
    """Head counts and comparison without a run, by the code of `headcount reproduce --all`."""
    _everything.SIZES = {"smoke": SIZE}  # at smoke scale only the theorems are asked
    _everything.COUNTED = {"smoke": _everything.COUNTED["quick"]}
    _everything.store_tables("smoke", FOLDER, print)


if __name__ == "__main__":
    main()
