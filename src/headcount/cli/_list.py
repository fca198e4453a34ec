"""`headcount list`: everything that has a name."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from ._output import print_json


def list_command(*, json: Annotated[bool, Parameter(negative=())] = False) -> int:
    """List models, initialisations, data models, optimisers, figures, claims and facts.

    Behind a fact stands what `headcount verify` says about it, behind a claim what the refutation
    of one of its forms is called.

    Parameters
    ----------
    json
        Print one JSON object on standard output.
    """
    names = known_names()
    if json:
        print_json(names)
        return 0
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    names["claims"] = _with_words(names["claims"])
    for kind, entries in names.items():
        table.add_row(f"[bold]{kind}[/bold]", ", ".join(entries))
    Console().print(table)
    return 0


def _with_words(names: list[str]) -> list[str]:
    """Behind a claim with a refuted form of the paper's own stands what that is called."""
    from ..theory import claims

    shown = []
    for name in names:
        forms = claims[name].forms.values()
        words = dict.fromkeys(f.briefly for f in forms if f.fails and f.role != "ours")
        shown.append(f"{name} ({', '.join(words)})" if words else name)
    return shown


def known_names() -> dict[str, list[str]]:
    """The names of every kind, in the order of registration."""
    from .. import data, lab, models, theory, training
    from ..core import activations, losses
    from ..training._recipes import all_recipes

    recipes = all_recipes()
    starts = [name for recipe in recipes.values() for name in recipe.starts]
    return {
        "models": list(dict.fromkeys([*models.models, *recipes])),
        "initialisations": list(dict.fromkeys([*models.initialisations, *starts])),
        "data": list(data.data_models),
        "optimisers": list(training.optimisers),
        "losses": list(losses),
        "activations": list(activations),
        "recorders": list(training.recorders),
        "figures": list(lab.figures),
        "claims": list(theory.claims),
        "facts": [f"{name} ({answer})" for name, answer in theory.recorded_answers().items()],
    }
