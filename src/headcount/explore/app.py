"""The page itself, as marimo runs it; `headcount explore` opens it."""

import marimo

app = marimo.App(width="medium", app_title="Headcount explorer")


@app.cell
def _():
    import time

    import marimo as mo

    from headcount import core, explore, training

    return core, explore, mo, time, training


@app.cell
def _(core, mo):
    keys = [key for key, paper in core.papers.items() if paper.setting and paper.models]
    paper = mo.ui.dropdown(keys, value=keys[0], label="paper")
    mo.vstack([mo.md("# Headcount explorer\nMove a slider: every theorem reacts."), paper])
    return (paper,)


@app.cell
def _(core, mo, paper, training):
    model = next(iter(core.papers[paper.value].models))
    recipe = training.recipe_of(model)
    starts = [recipe.init, *(s for s in recipe.starts if s != recipe.init)]
    if "scaling" in recipe.options:
        starts += [name for name in ("lecun", "he", "ntk") if name not in starts]
    width = mo.ui.slider(1, 60, value=6, label="width, log2", show_value=True)
    n = mo.ui.slider(4, 200, value=40, label="samples n", show_value=True, debounce=True)
    T = mo.ui.slider(2, 20, value=6, label="tokens T", show_value=True, debounce=True)
    d = mo.ui.slider(3, 20, value=4, label="features d", show_value=True, debounce=True)
    steps = mo.ui.slider(10, 1000, step=10, value=100, label="steps", show_value=True)
    own = mo.ui.switch(value=True, label="the paper's step size")
    eta = mo.ui.slider(-8, 1, step=0.1, value=-1, label="else step size, log10", show_value=True)
    delta = mo.ui.slider(-6, -0.4, step=0.1, value=-1.3, label="delta, log10", show_value=True)
    rho = mo.ui.slider(0.1, 10, step=0.1, value=3, label="radius rho", show_value=True)
    nu = mo.ui.slider(0.1, 10, step=0.1, value=3, label="teacher nu", show_value=True)
    scaling = mo.ui.radio(["realistic", "ntk"], value="realistic", label="softmax scaling")
    init = mo.ui.dropdown(starts, value=starts[0], label="initialisation")
    mo.hstack(
        [
            mo.vstack([width, n, T, d]),
            mo.vstack([steps, own, eta, delta]),
            mo.vstack([rho, nu, scaling, init]),
        ],
        wrap=True,
    )
    return T, d, delta, eta, init, n, nu, own, rho, scaling, steps, width


@app.cell
def _(T, d, delta, eta, explore, init, n, nu, own, paper, rho, scaling, steps, width):
    sizes = explore.Sizes(
        paper=paper.value,
        width=2**width.value,
        n=n.value,
        T=T.value,
        d=d.value,
        steps=steps.value,
        eta=None if own.value else 10.0**eta.value,
        delta=10.0**delta.value,
        rho=rho.value,
        nu=nu.value,
        scaling=scaling.value,
        init=init.value,
    )
    return (sizes,)


@app.cell
def _(explore, mo, sizes, time):
    _began = time.perf_counter()
    _table = explore.table(sizes)
    _spent = 1000 * (time.perf_counter() - _began)
    mo.vstack(
        [
            mo.md(f"## What the theorems say at width {sizes.width}"),
            mo.Html(f"<div style='max-height:29rem;overflow:auto' tabindex='0'>{_table}</div>"),
            mo.md(f"*Evaluated in {_spent:.0f} ms.*"),
        ]
    )
    return


@app.cell
def _(mo):
    go = mo.ui.run_button(label="Train this model")
    look = mo.ui.run_button(label="Show attention and kernel at the start")
    mo.hstack([go, look], justify="start")
    return go, look


@app.cell
def _(explore, go, look, mo, sizes):
    mo.stop(not (go.value or look.value), mo.md("Runs are at most 256 wide."))
    if look.value:
        mo.output.replace(mo.Html(explore.draw_model(sizes)))
    else:
        try:
            _rows = explore.promises(sizes)
        except ValueError:
            _rows = []
        _steps, _losses = [], []

        def _tell(done, total, loss):
            _steps.append(done)
            _losses.append(loss)
            mo.output.replace(mo.Html(explore.draw_loss(_steps, _losses, _rows)))

        run = explore.train(sizes, _tell)
        _loss = [float(value) for value in run.loss.ravel()]
        _words = mo.md(f"Finished: loss {_loss[0]:.4g} at the start, smallest {min(_loss):.4g}.")
        _curve = explore.draw_loss(range(len(_loss)), _loss, _rows)
        _maps = explore.draw_model(sizes, run.parameters())
        mo.output.replace(mo.vstack([_words, mo.Html(_curve), mo.Html(_maps)]))
    return


if __name__ == "__main__":
    app.run()
