# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""The page itself, as marimo runs it; `headcount explore` opens it."""

import marimo

app = marimo.App(
    width="full",
    app_title="Headcount explorer",
    css_file="explore.css",
    html_head_file="head.html",
)


@app.cell
def _():
    import time
    import warnings

    import marimo as mo

    from headcount import core, explore

    # Widths beyond 2^53 are powers of two, which JavaScript has exactly.
    warnings.filterwarnings("ignore", message=".*outside the range of safe")
    return core, explore, mo, time


@app.cell
def _(mo):
    asked = {name: str(value) for name, value in mo.query_params().to_dict().items()}
    runs, set_runs = mo.state(())
    return asked, runs, set_runs


@app.cell
def _(asked, core, mo):
    keys = [key for key, one in core.papers.items() if one.setting and one.models]
    named = {f"{key}: {core.papers[key].title}": key for key in keys}
    chosen = next((name for name, key in named.items() if key == asked.get("paper")), None)
    paper = mo.ui.dropdown(named, value=chosen or next(iter(named)), label="paper", full_width=True)
    mo.vstack([mo.md("# Headcount explorer"), mo.Html(f'<div class="paper">{paper}</div>')])
    return (paper,)


@app.cell
def _(asked, explore, mo, paper):
    def _element(control):
        at = control.read(asked.get(control.name))
        if isinstance(at, str):
            return mo.ui.dropdown(list(control.positions), value=at, label=control.label)
        return mo.ui.slider(
            steps=list(control.positions), value=at, label=control.label,
            show_value=True, debounce=control.name in ("n", "T", "d"), full_width=True,
        )  # fmt: skip

    controls = mo.ui.dictionary({c.name: _element(c) for c in explore.controls_of(paper.value)})
    _groups = list(explore.groups(paper.value))
    _at = asked.get("group")
    group = mo.ui.dropdown(
        _groups, value=_at if _at in _groups else _groups[0], label="bounds of", full_width=True
    )
    mo.Html(
        "<div class='controls'>" + "".join(f"<div>{e}</div>" for e in controls.elements.values())
        + f"<div>{group}</div></div>"
    )  # fmt: skip
    return controls, group


@app.cell
def _(controls, explore, group, mo, paper):
    sizes = explore.sizes_at(paper.value, controls.value)
    for _name, _value in explore.address(paper.value, controls.value, group=group.value).items():
        if mo.query_params().get(_name) != _value:
            mo.query_params().set(_name, _value)
    return (sizes,)


@app.cell
def _(explore, group, mo, runs, sizes, time):
    _began = time.perf_counter()
    try:
        _picture = explore.draw_curves(sizes, group.value, runs())
        _lamps = explore.show_lamps(sizes, group.value)
    except ValueError as _error:
        mo.stop(True, mo.md(f"**{_error}**"))
    _spent = 1000 * (time.perf_counter() - _began)
    mo.vstack(
        [
            mo.md(f"## {group.value.capitalize()} at width {sizes.width:,}"),
            mo.Html(_picture),
            mo.md("### What is asked of the sizes"),
            mo.Html(_lamps),
            mo.Html(f"<p class='soft'>Evaluated in {_spent:.0f} ms.</p>"),
        ]
    )
    return


@app.cell
def _(explore, mo, sizes):
    go = mo.ui.run_button(label="Train this model")
    look = mo.ui.run_button(label="Show attention and kernel at the start")
    mo.vstack([mo.hstack([go, look], justify="start", wrap=True), mo.md(explore.run_text(sizes))])
    return go, look


@app.cell
def _(explore, go, look, mo, set_runs, sizes):
    mo.stop(not (go.value or look.value))
    try:
        _ran = explore.runnable(sizes)
        _rows = explore.promises(_ran)
        if look.value:
            mo.output.replace(mo.Html(explore.draw_model(sizes)))
        else:
            _losses = []

            def _tell(done, total, loss):
                _losses.append(loss)
                mo.output.replace(mo.Html(f"<p>step {done} of {total}: loss {loss:.4g}</p>"))

            _run = explore.train(sizes, _tell)
            _loss = [float(value) for value in _run.loss.ravel()]
            _done = explore.Ran.of(_ran, _loss)
            set_runs(lambda before: (*before, _done))
            _words = mo.md(f"## A run at width {_ran.width:,}\n{_done.told}")
            _shown = [_words, mo.Html(explore.draw_loss(_ran, _loss, _rows))]
            if not _done.diverged:
                _shown.append(mo.Html(explore.draw_model(sizes, _run.parameters())))
            mo.output.replace(mo.vstack(_shown))
    except ValueError as _error:
        mo.output.replace(mo.md(f"**{_error}**"))
    return


@app.cell
def _(explore, mo, sizes):
    _table = f"<div class='scroll' tabindex='0' style='overflow:auto'>{explore.table(sizes)}</div>"
    mo.accordion({"Everything that the theorems say at these sizes": mo.Html(_table)}, lazy=False)
    return


if __name__ == "__main__":
    app.run()
