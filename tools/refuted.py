"""`python -m tools.refuted`: docs/refuted.md, docs/errata.md and README's table of the papers.

All three are made from the claims, their quotations and the certificates; tests keep them equal.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
START, END = "<!-- papers -->", "<!-- end of papers -->"


def table(readme: str) -> str:
    """One row for each paper; its figures, the last column, stay as they are."""
    from headcount.theory import claims, errata, refuted_by_role
    from headcount.theory._forms import BRIEFLY
    from headcount.theory._refuted import refuted_in_words

    roles = [role for role in BRIEFLY if role not in ("assumption", "ours")]
    heads = ["paper", "claims", *(BRIEFLY[role] for role in roles), "notes on the text", "figures"]
    heads[heads.index("informal")] = "informal or assumed"
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for line in readme.partition(START)[2].partition(END)[0].splitlines():
        if line.startswith("| `"):
            key, figures = line.split("`")[1], line.split("|")[-2].strip()
            counts, told = refuted_by_role(key), refuted_in_words(key)
            told["informal"] = str(counts["informal"] + counts["assumption"])
            notes = len(errata.of_paper(key))
            numbers = [len(claims.of_paper(key)), *(told[role] for role in roles), notes]
            rows.append(f"| `{key}` | {' | '.join(map(str, numbers))} | {figures} |")
    return "\n".join(rows)


def with_table(readme: str) -> str:
    """The README with this table between its marks."""
    before, _, rest = readme.partition(START)
    return f"{before}{START}\n{table(readme)}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    from headcount.theory import errata_page, refuted_page

    (ROOT / "docs" / "refuted.md").write_text(refuted_page(), encoding="utf-8")
    (ROOT / "docs" / "errata.md").write_text(errata_page(), encoding="utf-8")
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
