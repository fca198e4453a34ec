"""Pages of the documentation that are generated: claims, figures, API; a hook of mkdocs.

`mkdocs build` calls the functions named on_...: nothing generated is committed, so nothing can be
out of date. Tutorials are also written as notebooks with the outputs that their tests compare.
"""

from __future__ import annotations

import ast
import html
import importlib
import inspect
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import headcount

ROOT = Path(__file__).parents[1]
LAYERS = tuple(name for name in headcount.__all__ if name != "__version__")
BLOCK = re.compile(r"```(python|text)\n(.*?)```", flags=re.DOTALL)


def escape(text: str) -> str:
    """Prose as Markdown that shows exactly these characters; `names` in backticks stay code."""
    parts = re.split(r"(`[^`\n]+`)", text)
    plain = (re.sub(r"([\\*_\[\]#|{}])", r"\\\1", html.escape(p, quote=False)) for p in parts[::2])
    return "".join(a + b for a, b in zip(plain, [*parts[1::2], ""], strict=True))


def table(headings: list[str], rows: list[list[str]]) -> list[str]:
    """A Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return ["| " + " | ".join(cell.replace("\n", " ") for cell in line) + " |" for line in lines]


def claim_page(claim: Any) -> str:
    """One claim: statement, formula, hypotheses, forms, counterexamples, what to type."""
    from latex2mathml.converter import convert

    from headcount.core import papers
    from headcount.theory import read_certificate, shipped_certificates

    lines = [
        f"# {claim.id}",
        "",
        f"**{escape(claim.title)}**, {escape(claim.equations)} ({claim.kind})",
    ]
    lines += ["", escape(claim.statement), "", f'<div class="formula">{convert(claim.latex)}</div>']
    if claim.hypotheses:
        lines += ["", "## Hypotheses", ""]
        lines += [f"- {escape(hypothesis.name)}" for hypothesis in claim.hypotheses]
    lines += ["", "## Forms", ""]
    lines += table(
        ["form", "what it is", "note on the text"],
        [
            [
                f"`{name}`" + (" (asked by default)" if name == claim.default else ""),
                escape(variant.text) + (f" **{escape(variant.called)}.**" if variant.fails else ""),
                f"[{variant.erratum}](../../../errata.md#{claim.paper})" if variant.erratum else "",
            ]
            for name, variant in claim.forms.items()
        ],
    )
    shipped = [read_certificate(path) for path in shipped_certificates()]
    own = [certificate for certificate in shipped if certificate.claim == claim.id]
    if own:
        lines += ["", "## Counterexamples", ""]
        lines += [f"- `{c.file_name}` against `{c.variant}`: {escape(c.note)}" for c in own]
    if claim.errata:
        notes = ", ".join(f"[{note}](../../../errata.md#{claim.paper})" for note in claim.errata)
        lines += ["", f"Notes on the text: {notes}."]
    where, model = claim.sides.__module__, next(iter(papers[claim.paper].models), "")
    searched = claim.families or claim.experiment is not None
    ask = f"falsify {claim.id} --budget small" if searched else f"audit --model {model}"
    lines += ["", "## Ask it", "", "```console", f"$ headcount {ask}", "```"]
    return "\n".join([*lines, "", f"Its code is in `{where}`.", ""])


def figure_page(figure: Any) -> str:
    """One figure: what it asks, its sizes at every scale, its options, what to type."""
    lines = [f"# {figure.id}", "", f"**{escape(figure.title)}** {escape(figure.reference)}", ""]
    module = inspect.getmodule(figure.trials)
    if module is not None and module.__doc__:
        lines += [escape(inspect.cleandoc(module.__doc__)), ""]
    if figure.notes:
        lines += ["## Readings and differences", "", escape(figure.notes), ""]
    names = list(figure.scales["paper"])
    rows = [[f"`{n}`", *(f"`{s[n]}`" for s in figure.scales.values())] for n in names]
    lines += ["## Sizes", "", *table(["setting", *figure.scales], rows), ""]
    if figure.axes:
        rows = [
            [f"`{axis.name}`", escape(axis.says), "; ".join(
                f"`{value}`: {escape(why)}" for value, why in axis.values.items())]
            for axis in figure.axes.values()
        ]  # fmt: skip
        lines += ["## What the text leaves open", ""]
        lines += [*table(["choice", "the paper", "values, ours first"], rows), ""]
    rows = [
        [f"`{name}`", ", ".join(f"`{value}`" for value in values)]
        for name, values in figure.options.items()
        if name not in figure.axes
    ]
    if rows:
        lines += ["## Options", "", *table(["option", "values, the default first"], rows), ""]
    lines += ["## Reproduce it", "", "```console", f"$ headcount reproduce {figure.id} --dry-run"]
    return "\n".join([*lines, f"$ headcount reproduce {figure.id}", "```", ""])


def index_page(title: str, words: str, entries: list[tuple[str, str, str]]) -> str:
    """A list of pages: (id, file, title)."""
    rows = [[f"[{name}]({file})", escape(text)] for name, file, text in entries]
    return "\n".join([f"# {title}", "", words, "", *table(["name", "title"], rows), ""])


def public_names(package: ModuleType) -> list[str]:
    """What a package offers: names without an underscore that are no modules."""
    return sorted(
        name
        for name, value in vars(package).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and name != "annotations"
    )


def documentation(package: ModuleType, name: str) -> str:
    """The docstring of a public name; for a constant the string below its assignment."""
    value = getattr(package, name)
    if inspect.isclass(value) or inspect.isroutine(value):
        return inspect.getdoc(value) or ""
    return _constants(package).get(name, "")


def _constants(package: ModuleType) -> dict[str, str]:
    """The strings below assignments in the modules of the layers, by name."""
    if not hasattr(_constants, "found"):
        found: dict[str, str] = {}
        for path in (ROOT / "src" / "headcount").rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            branches = [
                part
                for node in tree.body
                if isinstance(node, ast.If)
                for part in (node.body, node.orelse)
            ]
            for body in (tree.body, *branches):
                found |= dict(_below_assignments(body))
        _constants.found = found  # type: ignore[attr-defined]
    return _constants.found  # type: ignore[attr-defined, no-any-return]


def _below_assignments(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for node, below in itertools.pairwise(body):
        text = below.value if isinstance(below, ast.Expr) else None
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            for target in getattr(node, "targets", [getattr(node, "target", None)]):
                if isinstance(target, ast.Name):
                    yield target.id, inspect.cleandoc(text.value)


def _prose(docstring: str) -> list[str]:
    """A docstring as Markdown: paragraphs escaped, examples and tables as code."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", docstring):
        indented = all(line.startswith("    ") for line in paragraph.splitlines())
        literal = paragraph.startswith(">>>") or indented or "----" in paragraph
        aligned = bool(re.search(r"\S {3,}\S", paragraph))
        lines += (
            ["", "```text", paragraph, "```"] if literal or aligned else ["", escape(paragraph)]
        )
    return lines


def api_page(layer: str) -> str:
    """All public names of a layer with their signatures and docstrings."""
    package = importlib.import_module(f"headcount.{layer}")
    lines = [f"# headcount.{layer}", "", escape(inspect.getdoc(package) or "")]
    for name in public_names(package):
        value = getattr(package, name)
        lines += ["", f"## {name}", ""]
        if inspect.isclass(value) or inspect.isroutine(value):
            lines += ["```py", f"{name}{_signature(value)}", "```"]
        lines += _prose(documentation(package, name))
        for method, function in _methods(value):
            lines += [
                "",
                f"**`.{method}{_signature(function)}`**",
                *_prose(inspect.getdoc(function) or ""),
            ]
    return "\n".join([*lines, ""])


def _methods(value: Any) -> Iterator[tuple[str, Any]]:
    """The public methods that a class of ours defines itself."""
    if inspect.isclass(value) and value.__module__.startswith("headcount"):
        for name, function in vars(value).items():
            if not name.startswith("_") and inspect.isfunction(function):
                yield name, function


class _Bare(str):
    """An annotation that is shown without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _bare(annotation: Any) -> Any:
    text = getattr(annotation, "__forward_arg__", annotation)
    return _Bare(text) if isinstance(text, str) else annotation


def _signature(value: Any) -> str:
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    parameters = [p.replace(annotation=_bare(p.annotation)) for p in found.parameters.values()]
    found = found.replace(parameters=parameters, return_annotation=_bare(found.return_annotation))
    return re.sub(r"0x[0-9a-f]+", "0x...", str(found))


def generated() -> dict[str, str]:
    """Every generated page by its place in the documentation."""
    from headcount.lab import figures
    from headcount.theory import claims

    pages = {f"reference/claims/{name}.md": claim_page(claim) for name, claim in claims.items()}
    pages |= {f"reference/figures/{name}.md": figure_page(fig) for name, fig in figures.items()}
    pages |= {f"reference/api/{layer}.md": api_page(layer) for layer in LAYERS}
    listed = [(name, f"{name}.md", claim.title) for name, claim in claims.items()]
    words = "Every statement that Headcount can be asked about; `headcount list` prints the names."
    pages["reference/claims/index.md"] = index_page("Claims", words, listed)
    listed = [(name, f"{name}.md", figure.title) for name, figure in figures.items()]
    words = "Every figure that `headcount reproduce` knows, of the papers and beyond them."
    pages["reference/figures/index.md"] = index_page("Figures", words, listed)
    listed = [
        (
            f"headcount.{n}",
            f"{n}.md",
            (importlib.import_module(f"headcount.{n}").__doc__ or "").split("\n")[0],
        )
        for n in LAYERS
    ]
    pages["reference/api/index.md"] = index_page("API", "The layers, from the bottom up.", listed)
    return pages


def notebook(markdown: str) -> dict[str, Any]:
    """A tutorial as an executed notebook: text cells, code cells, and what they printed."""
    cells: list[dict[str, Any]] = []
    end = 0
    for match in BLOCK.finditer(markdown):
        words, end = markdown[end : match.start()].strip(), match.end()
        if words:
            cells.append({"cell_type": "markdown", "metadata": {}, "source": words})
        if match[1] == "python":
            code = {"cell_type": "code", "metadata": {}, "source": match[2].rstrip()}
            cells.append(code | {"execution_count": None, "outputs": []})
        else:
            printed = {"output_type": "stream", "name": "stdout", "text": match[2]}
            cells[-1]["outputs"].append(printed)
    if markdown[end:].strip():
        cells.append({"cell_type": "markdown", "metadata": {}, "source": markdown[end:].strip()})
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def on_files(files: Any, config: Any) -> Any:
    """mkdocs asks which files there are: ours join them."""
    from mkdocs.structure.files import File

    for place, content in generated().items():
        files.append(File.generated(config, place, content=content))
    for path in sorted((ROOT / "docs" / "tutorials").glob("*.md")):
        content = json.dumps(notebook(path.read_text(encoding="utf-8")), indent=1)
        files.append(File.generated(config, f"tutorials/{path.stem}.ipynb", content=content))
    return files
