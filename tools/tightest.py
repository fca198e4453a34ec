"""Write what is missing in every paper's tightest.json: python -m tools.tightest [ids ...]

Claims that are named are evaluated again.
"""

from __future__ import annotations

import sys

from headcount.theory import claims
from headcount.theory._tightest import rows_of, write_row


def main(named: list[str]) -> None:
    """Evaluate the claims that are named, or those that are missing."""
    missing = (n for n in claims if n.split("/")[-1] not in rows_of(n.split("/")[0]))
    for name in named or list(missing):
        write_row(claims[name])
        print(name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
