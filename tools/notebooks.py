"""Notebooks: run their cells, keep what they show, and turn them into pages of the documentation.

    python -m tools.notebooks            # run all of examples/notebooks and write their outputs
    python -m tools.notebooks wu2023     # that one

No Jupyter is needed: a cell is executed as a whole, and its last expression is shown.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "examples" / "notebooks"
DOTS_PER_INCH = 110
Notebook = dict[str, Any]


def read(path: Path) -> Notebook:
    """A notebook from its file, cell sources as one text each."""
    content: Notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in content["cells"]:
        cell["source"] = "".join(cell["source"])
    return content


def execute(notebook: Notebook, name: str) -> Notebook:
    """The notebook with the outputs of its code cells, run in order in one namespace."""
    names: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            cell["outputs"] = run_cell(cell["source"], names, f"{name}.ipynb, cell {count}", count)
            cell["execution_count"] = count
    return notebook


def run_cell(source: str, names: dict[str, Any], place: str, count: int) -> list[dict[str, Any]]:
    """What a cell prints, and what its last expression shows."""
    tree = ast.parse(source, place)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, shown = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, place, "exec"), names)
        if last is not None:
            shown = eval(compile(ast.Expression(last.value), place, "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": printed.getvalue()})
    if shown is not None:
        result = {"output_type": "execute_result", "execution_count": count, "metadata": {}}
        outputs.append(result | {"data": mime(shown)})
    return outputs


def mime(value: Any) -> dict[str, str]:
    """A value as text, and as HTML, LaTeX or a picture where it has one."""
    if hasattr(value, "savefig"):
        picture = io.BytesIO()
        value.savefig(picture, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
        encoded = base64.b64encode(picture.getvalue()).decode()
        return {"text/plain": "<Figure>", "image/png": encoded}
    found = {"text/plain": repr(value)}
    for kind, method in (("text/html", "_repr_html_"), ("text/latex", "_repr_latex_")):
        text = getattr(value, method, lambda: None)()
        if text:
            found[kind] = text
    return found


def write(notebook: Notebook, path: Path) -> None:
    """The notebook as its file: texts as lines, so that a change is readable."""
    for cell in notebook["cells"]:
        cell["source"] = cell["source"].splitlines(keepends=True)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def texts(notebook: Notebook) -> list[str]:
    """For each code cell what it prints and shows, as lines of text."""
    return [
        "".join(out.get("text") or out["data"]["text/plain"] + "\n" for out in cell["outputs"])
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def page(notebook: Notebook, name: str) -> tuple[str, dict[str, bytes]]:
    """A page of Markdown with code and outputs, and its pictures by file name."""
    lines: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            lines += [cell["source"], ""]
            continue
        lines += ["```python", cell["source"], "```", ""]
        for output in cell["outputs"]:
            lines += [*_shown(output, name, pictures), ""]
    return "\n".join(lines), pictures


def _shown(output: dict[str, Any], name: str, pictures: dict[str, bytes]) -> list[str]:
    data = output.get("data", {"text/plain": "".join(output.get("text", ""))})
    if "image/png" in data:
        file = f"{name}-{len(pictures) + 1}.png"
        pictures[file] = base64.b64decode(data["image/png"])
        return [f"![What the cell above draws]({file})"]
    if "text/html" in data:
        return [f'<div class="output">{"".join(data["text/html"])}</div>']
    return ["```text", "".join(data["text/plain"]).rstrip("\n"), "```"]


def main(names: list[str]) -> None:
    """Run notebooks and write what they show into their files."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        if not names or path.stem in names:
            print(path.name, flush=True)
            with contextlib.chdir(FOLDER):  # their data lie beside them
                done = execute(read(path), path.stem)
            write(done, path)


if __name__ == "__main__":
    main(sys.argv[1:])
