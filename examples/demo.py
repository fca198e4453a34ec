"""Reproduce Figure 1 of arda2026 at quick scale: about 140 seconds of CPU time, on all cores.

The same as `headcount reproduce arda2026/fig1`. Run it again and nothing is computed twice.
"""

from __future__ import annotations

from headcount import cli, lab

FIGURE = "arda2026/fig1"
SCALE = "quick"


def main() -> None:
    """Say where the results will be, then run the command."""
    folder = lab.Store().figure_folder(FIGURE, SCALE)
    print(f"figure:   {folder / 'figure.png'} (also .pdf and .svg)")
    print(f"table:    {folder / 'plotted.csv'} (every plotted number)")
    print(f"verdicts: {folder / 'verdicts.json'} (also printed below)")
    print(f"\n$ headcount reproduce {FIGURE} --scale {SCALE}\n", flush=True)
    try:
        cli.main(["reproduce", FIGURE, "--scale", SCALE])
    except SystemExit as done:
        if not done.code:
            print(
                "\nShown: how three errors of arda2026 fall with the width, and which claims "
                f"about them hold; the picture: {folder / 'figure.png'}; "
                "try next: headcount explain arda2026/theorem-1"
            )
        raise


if __name__ == "__main__":  # workers are new processes that import this file
    main()
