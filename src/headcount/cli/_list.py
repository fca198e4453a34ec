"""`headcount list`: everything that has a name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from cyclopts import Parameter

from ._output import print_json

OF_PAPERS = ("models", "figures", "claims", "facts")
"""What belongs to a paper; all else is shared."""


def list_command(
    *, paper: str | None = None, json: Annotated[bool, Parameter(negative=())] = False
) -> int:
    """List what has a name: what all papers share, then models, figures, claims, facts of each.

    Behind a fact stands what `headcount verify` says about it, behind a claim what the refutation
    of one of its forms is called.

    Parameters
    ----------
    paper
        Only what this paper brings, by its key.
    json
        Print one JSON object on standard output.
    """
    from ..core import papers

    chosen = list(papers) if paper is None else [papers[paper].key]
    if json:
        print_json(known_names() if paper is None else names_of(chosen[0]))
        return 0
    from rich.console import Console

    lines = [] if paper is not None else list(_shared())
    for key in chosen:
        lines += _of_paper(key)
    console = Console()
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)
    return 0


def _shared() -> Iterator[str]:
    """One paragraph for each kind that belongs to no paper, broken at its names."""
    from textwrap import wrap

    names = known_names()
    for kind in (kind for kind in names if kind not in OF_PAPERS):
        yield f"[bold]{kind}[/bold]"
        yield from wrap(
            ", ".join(names[kind]),
            80,
            initial_indent="  ",
            subsequent_indent="  ",
            break_on_hyphens=False,
            break_long_words=False,
        )


def _of_paper(key: str) -> Iterator[str]:
    """A paper with its title, then a line for each thing that it brings."""
    from rich.markup import escape

    from ..core import papers

    paper, names = papers[key], names_of(key)
    if not any(names.values()):
        return
    yield ""
    yield f"[bold]{key}[/bold]  {escape(paper.title)} ({escape(paper.citation)})"
    titles = {"figures": _figure_title, "claims": _claim_title, "facts": _fact_title}
    for kind, known in names.items():
        if known:
            yield f"  [bold]{kind}[/bold]"
            yield from (_row(name, titles.get(kind, str)(name)) for name in known)


def _row(name: str, title: str) -> str:
    """A name and its title: in columns where the name is short."""
    from rich.markup import escape

    shown = escape(title) if title != name else ""
    return f"    {name:<32}  {shown}".rstrip()


def _figure_title(name: str) -> str:
    from ..lab import figures

    return figures[name].title


def _claim_title(name: str) -> str:
    """The title, and what a refuted form of the paper's own is called."""
    from ..theory import claims

    return " ".join([claims[name].title, *_with_words([name])[0].split(" ", 1)[1:]])


def _fact_title(name: str) -> str:
    from ..theory import facts, recorded_answers

    return f"{facts[name].title} ({recorded_answers()[name]})"


def _with_words(names: list[str]) -> list[str]:
    """Behind a claim with a refuted form of the paper's own stands what that is called."""
    from ..theory import claims

    shown = []
    for name in names:
        forms = claims[name].forms.values()
        words = dict.fromkeys(f.briefly for f in forms if f.fails and f.role != "ours")
        shown.append(f"{name} ({', '.join(words)})" if words else name)
    return shown


def names_of(key: str) -> dict[str, list[str]]:
    """The names that a paper brings."""
    from ..core import papers
    from ..lab import figures
    from ..theory import claims, facts

    registries: dict[str, Any] = {"figures": figures, "claims": claims, "facts": facts}
    own = {kind: [n for n in names if n.split("/")[0] == key] for kind, names in registries.items()}
    return {"models": list(papers[key].models), **own}


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
