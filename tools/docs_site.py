"""Pages of the documentation that are generated: claims, figures, gallery, API; a hook of mkdocs.

`mkdocs build` calls the functions named on_...: nothing generated is committed, so nothing can be
out of date. Tutorials are also written as notebooks with the outputs that their tests compare.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # mkdocs loads a hook as a file of its own

from tools import docs_api, docs_gallery, notebooks  # noqa: E402
from tools.docs_words import escape, table, typeset  # noqa: E402

BLOCK = re.compile(r"```(python|text)\n(.*?)```", flags=re.DOTALL)


KIND_OF_BOX = {"statement": "danger", "step": "warning", "implication": "warning"}
"""How loud a refutation is on a claim's page, by its role; the others are notes."""


def claim_page(claim: Any) -> str:
    """One claim: statement, formula, hypotheses, forms, counterexamples, what to type."""
    from latex2mathml.converter import convert

    from headcount.core import papers
    from headcount.theory import read_certificate, shipped_certificates

    lines = [
        f"# {claim.id}",
        "",
        f"**{typeset(claim.title)}**, {escape(claim.equations)} ({claim.kind})",
    ]
    for name, form in claim.forms.items():
        if form.fails:
            told = f"{name}: {form.called}" + (f" ({form.where})" if form.where else "")
            lines += ["", f'!!! {KIND_OF_BOX.get(form.role, "note")} "{form.briefly}"']
            lines += ["", f"    {escape(told)}"]
    lines += [
        "",
        typeset(claim.statement),
        "",
        f'<div class="formula">{convert(claim.latex)}</div>',
    ]
    if claim.hypotheses:
        lines += ["", "## Hypotheses", ""]
        lines += [f"- {typeset(hypothesis.name)}" for hypothesis in claim.hypotheses]
    lines += ["", "## Forms", ""]
    lines += table(
        ["form", "what it is", "note on the text"],
        [
            [
                f"`{name}`" + (" (asked by default)" if name == claim.default else ""),
                typeset(variant.text)
                + (f" **{escape(variant.called)}.**" if variant.fails else ""),
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
    declared = claim.function if claim.on is not None else claim.sides
    where, model = declared.__module__, next(iter(papers[claim.paper].models), "")
    searched = claim.families or claim.experiment is not None
    ask = f"falsify {claim.id} --budget small" if searched else f"audit --model {model}"
    lines += ["", "## Ask it", "", "```console", f"$ headcount {ask}", "```"]
    return "\n".join([*lines, "", f"Its code is in `{where}`.", ""])


def figure_page(figure: Any) -> str:
    """One figure: what it asks, its sizes at every scale, its options, what to type."""
    lines = [f"# {figure.id}", "", f"**{typeset(figure.title)}** {escape(figure.reference)}", ""]
    lines += docs_gallery.verdicts_section(figure.id, docs_gallery.on_file().get(figure.id))
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
    rows = [[f"[{name}]({file})", typeset(text)] for name, file, text in entries]
    return "\n".join([f"# {title}", "", words, "", *table(["name", "title"], rows), ""])


def refuted_in(claim: Any) -> str:
    """What is refuted in a claim, and in which role: a mark for the index."""
    marks = {"statement": "✕", "step": "△", "implication": "△"}
    found = dict.fromkeys(
        f"{marks.get(form.role, '○')} {name}: {form.briefly}"
        for name, form in claim.forms.items()
        if form.fails
    )
    return escape("; ".join(found))


def claim_indexes() -> dict[str, str]:
    """The list of all claims of each paper, marked with what is refuted, and the page of them."""
    from headcount.core import papers
    from headcount.theory import claims, refuted_by_role
    from headcount.theory._forms import BRIEFLY

    pages, rows = {}, []
    legend = "✕ a numbered result is false as printed; △ a step or an implication; ○ anything else."
    for key, paper in papers.items():
        if not (own := claims.of_paper(key)):
            continue
        lines = [f"# Claims of {key}", "", escape(f"{paper.citation}: {paper.title}"), "", legend]
        cells = [
            [
                f"[{claim.id}]({claim.id.removeprefix(f'{key}/')}.md)",
                f"{typeset(claim.title)} ({escape(claim.equations)})",
                refuted_in(claim),
            ]
            for claim in own
        ]
        lines += ["", *table(["name", "title and place", "refuted"], cells), ""]
        pages[f"reference/claims/{key}/index.md"] = "\n".join(lines)
        counts = refuted_by_role(key)
        row = [f"[{key}]({key}/index.md)", escape(paper.title), str(len(own))]
        rows.append([*row, *(str(counts[role]) for role in BRIEFLY)])
    lines = ["# Claims", "", "Every statement that Headcount can be asked about; `headcount list` "]
    lines += ["prints the names. The columns on the right count forms with a shipped"]
    lines += ["counterexample, by [what the refuted sentence is](../../refuted.md)."]
    heads = ["paper", "title", "claims", *BRIEFLY.values()]
    pages["reference/claims/index.md"] = "\n".join([*lines, "", *table(heads, rows), ""])
    return pages


@functools.cache
def notebook_pages() -> dict[str, str | bytes]:
    """Every notebook of examples/ as a page with its outputs, and their pictures."""
    pages: dict[str, str | bytes] = {}
    rows = []
    for path in sorted(notebooks.FOLDER.glob("*.ipynb")):
        text, pictures = notebooks.page(notebooks.read(path), path.stem)
        heading, _, body = text.partition("\n")
        link = f"[Download this notebook]({path.name}); it is in `examples/notebooks`.\n"
        pages[f"notebooks/{path.stem}.md"] = f"{heading}\n\n{link}{body}"
        pages[f"notebooks/{path.name}"] = path.read_bytes()
        pages |= {f"notebooks/{name}": content for name, content in pictures.items()}
        rows.append((path.stem, f"{path.stem}.md", heading.removeprefix("# ")))
    words = "Each runs in under a minute, and is shown with what it printed."
    pages["notebooks/index.md"] = index_page("Notebooks", words, rows)
    return pages


@functools.cache
def generated() -> dict[str, str]:
    """Every generated page by its place in the documentation."""
    from headcount.lab import figures
    from headcount.theory import claims

    pages = {f"reference/claims/{name}.md": claim_page(claim) for name, claim in claims.items()}
    pages |= {f"reference/figures/{name}.md": figure_page(fig) for name, fig in figures.items()}
    pages |= claim_indexes()
    pages["gallery.md"] = docs_gallery.gallery_page(dict(figures.items()), docs_gallery.on_file())
    listed = [(name, f"{name}.md", figure.title) for name, figure in figures.items()]
    words = "Every figure that `headcount reproduce` knows, of the papers and beyond them."
    pages["reference/figures/index.md"] = index_page("Figures", words, listed)
    listed = []
    for layer in docs_api.LAYERS:
        pages |= docs_api.api_pages(layer)
        first = (importlib.import_module(f"headcount.{layer}").__doc__ or "").split("\n")[0]
        listed.append((f"headcount.{layer}", f"{layer}.md", first))
    pages["reference/api/index.md"] = index_page("API", "The layers, from the bottom up.", listed)
    return pages


def on_config(config: Any) -> Any:
    """mkdocs asks for its configuration: generated pages get navigation."""
    names = [name for name in generated() | notebook_pages() if name.endswith(".md")]
    for section in (section for tab in config.nav for section in tab.values()):
        for entry in section if isinstance(section, list) else ():
            for title, place in list(entry.items()):
                folder = place.removesuffix("index.md")
                if place.endswith("/index.md"):
                    entry[title] = [place, *_below(folder, names)]
    return config


def _below(folder: str, names: list[str]) -> list[Any]:
    """Navigation for what lies in a folder: its pages, and a section for each folder in it."""
    own = [name.removeprefix(folder) for name in names if name.startswith(folder)]
    found: list[Any] = []
    for name in own:
        first, _, rest = name.partition("/")
        if not rest and first != "index.md" and f"{folder}{first[:-3]}/" not in _folders(names):
            found.append({first.removesuffix(".md"): folder + first})
    for first in dict.fromkeys(name.split("/")[0] for name in own if "/" in name):
        inner = f"{folder}{first}/"
        tops = [place for place in (f"{inner}index.md", f"{folder}{first}.md") if place in names]
        found.append({first: [*tops, *_below(inner, names)]})
    return found


def _folders(names: list[str]) -> set[str]:
    return {f"{name.rpartition('/')[0]}/" for name in names}


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

    for place, content in (generated() | notebook_pages()).items():
        files.append(File.generated(config, place, content=content))
    for path in sorted((ROOT / "docs" / "tutorials").glob("*.md")):
        content = json.dumps(notebook(path.read_text(encoding="utf-8")), indent=1)
        files.append(File.generated(config, f"tutorials/{path.stem}.ipynb", content=content))
    return files
