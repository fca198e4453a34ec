"""Beyond the figures of arda2026: the other promises of its theorems, each with a verdict.

steps     loss against tau at fixed width                       [Theorem 1]
samples   approximation error against n: logarithmic            [Lemma 5]
tokens    errors against T: no dependence                       [Secs. 4 and 5]
projsgd   ProjGD against ProjSGD at an equal number of steps    [Proposition 1]
iterates  last against average against best iterate             [Theorem 1, (45) and (46)]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import (
    Figure,
    Trial,
    Verdict,
    difference,
    draw_interval,
    draw_power_law,
    draw_reference_slope,
    exponent,
    inside,
    log_log,
    monotone,
    over_seeds,
    paired_difference,
    power_law,
    register,
    separation,
)
from ._arda2026_fig1 import approximation_config, linearisation_config, training_config
from ._arda2026_problem import TEACHERS, teacher_settings
from ._arda2026_samples import samples
from ._arda2026_training import training
from ._arda2026_widths import approximation, linearisation
from ._axes import tick_at

if TYPE_CHECKING:
    import xarray as xr

PAPER = {"teacher": "paper", "step": "paper", "heads": "paired", "split": "all"}
AT_LEAST_HALF = (-math.inf, -0.35)
"""Slopes that count as "falls at least like tau^(-1/2)"."""
NO_GROWTH = (-math.inf, 0.1)
NO_POWER = (-0.05, 0.15)
"""sqrt(ln n) has local slope 1/(2 ln n): 0.13 at n = 50, 0.05 at n = 10^4."""

ITERATES = {
    "min_loss": "best iterate",
    "final_loss": "last iterate",
    "average_iterate_loss": "averaged iterate",
    "mean_loss": "mean over iterates",
}


def _sizes(smoke: dict[str, Any], quick: dict[str, Any], paper: dict[str, Any]) -> dict[str, Any]:
    """The scales of a teacher-student figure."""
    return {
        "smoke": {"seeds": 3, "m": 8, "n": 100, "T": 16, "d": 8, "pool": 256, **smoke},
        "quick": {"seeds": 5, "m": 64, "n": 500, "T": 16, "d": 8, "pool": 2048, **quick},
        "paper": {"seeds": 10, "m": 64, "n": 5000, "T": 16, "d": 8, "pool": 8192, **paper},
    }


def _options(options: Mapping[str, str]) -> dict[str, str]:
    return {**PAPER, **options}


def steps_trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """One training run per number of steps: eta = 1/sqrt(tau) differs between them."""
    return [
        Trial(
            training,
            training_config({**settings, "steps": tau}, settings["m"], seed, _options(options)),
            {"tau": tau, "seed": seed},
            f"tau={tau}",
        )
        for tau in settings["taus"]
        for seed in seeds
    ]


def _by_seed(data: xr.Dataset, name: str, x: str) -> Any:
    return data[name].transpose("seed", x).values


def iterate_statistics(data: xr.Dataset) -> xr.Dataset:
    """Losses of all kinds of iterates against tau, with their power laws."""
    import xarray as xr

    parts = [over_seeds(data[name]) for name in ITERATES]
    return xr.merge([*parts, *(power_law(data[name], "tau") for name in ITERATES)])


def steps_verdicts(data: xr.Dataset) -> list[Verdict]:
    """Theorem 1's optimisation term falls like tau^(-1/2); the width's terms are a floor."""
    tau = data["tau"].values
    found = []
    for name in ("min_loss", "mean_loss"):
        y = _by_seed(data, name, "tau")
        title = {"min_loss": "smallest loss", "mean_loss": "mean loss over iterates"}[name]
        found.append(monotone(f"the {title} decreases with tau", tau, y, "decreasing"))
        claim = f"the {title} falls at least like tau^(-1/2)"
        found.append(exponent(claim, tau, y, AT_LEAST_HALF))
    return found


def iterates_verdicts(data: xr.Dataset) -> list[Verdict]:
    """What (45) and (46) promise, and what they leave open about the last iterate."""
    tau = data["tau"].values
    at_end = {name: _by_seed(data, name, "tau")[:, -1] for name in ITERATES}
    average = _by_seed(data, "average_iterate_loss", "tau")
    best_to_last = paired_difference(np.log(at_end["min_loss"]), np.log(at_end["final_loss"]))
    return [
        exponent(
            "the averaged iterate falls at least like tau^(-1/2)", tau, average, AT_LEAST_HALF
        ),
        separation(
            "the averaged iterate is no worse than the mean over iterates, as for a convex loss",
            at_end["mean_loss"],
            at_end["average_iterate_loss"],
        ),
        separation(
            "the last iterate is better than the averaged one",
            at_end["average_iterate_loss"],
            at_end["final_loss"],
        ),
        inside(
            "the best iterate is the last one, up to 1 % of the loss",
            best_to_last,
            (-0.01, 0.01),
            "log ratio",
        ),
    ]


def _curves(data: xr.Dataset, ax: Any, x: str, names: Mapping[str, str], x_label: str) -> None:
    for index, (name, label) in enumerate(names.items()):
        draw_interval(ax, data, f"mean_{name}", x, label=label, index=index)
        draw_power_law(ax, data, name, x, index=index)
    log_log(ax, x_label, "loss" if "min_loss" in names else "error")
    tick_at(ax, data[x].values)


def steps_plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Smallest and mean loss against tau."""
    (ax,) = axes
    first = float(data["mean_mean_loss"].values[0])
    draw_reference_slope(ax, data["tau"].values, first, -0.5, "predicted: slope -1/2")
    shown = {name: ITERATES[name] for name in ("min_loss", "mean_loss")}
    _curves(data, ax, "tau", shown, "steps tau")


def iterates_plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """All kinds of iterates against tau."""
    (ax,) = axes
    _curves(data, ax, "tau", ITERATES, "steps tau")


_STEPS = _sizes(
    {"taus": [20, 40, 80]}, {"taus": [100, 400, 1600]}, {"taus": [250, 1000, 4000, 16000]}
)
_CHOICES = {"teacher": tuple(TEACHERS)}

steps_figure = register(
    Figure(
        id="arda2026/steps",
        title="Loss against the number of steps tau at fixed width",
        reference="[arda2026, Theorem 1]",
        scales=_STEPS,
        trials=steps_trials,
        statistics=iterate_statistics,
        verdicts=steps_verdicts,
        plot=steps_plot,
        options=_CHOICES,
    )
)

iterates_figure = register(
    Figure(
        id="arda2026/iterates",
        title="Last, averaged and best iterate against the number of steps tau",
        reference="[arda2026, Theorem 1, Eqs. (45) and (46)]",
        scales=_STEPS,
        trials=steps_trials,
        statistics=iterate_statistics,
        verdicts=iterates_verdicts,
        plot=iterates_plot,
        options=_CHOICES,
    )
)


def samples_trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """One trial per seed: the first n of its inputs are a sample of size n."""
    data = teacher_settings(settings, options["teacher"])
    shared = {**data, "m": settings["m"], "counts": settings["counts"], "dtype": "float64"}
    return [Trial(samples, {**shared, "seed": seed}, {"seed": seed}) for seed in seeds]


def samples_statistics(data: xr.Dataset) -> xr.Dataset:
    """Mean error against n, with its power law."""
    error = data["approximation_sup"]
    return over_seeds(error).merge(power_law(error, "n"))


def samples_verdicts(data: xr.Dataset) -> list[Verdict]:
    """Lemma 5: n enters through ln(2n/delta) alone."""
    n, error = data["n"].values, _by_seed(data, "approximation_sup", "n")
    return [
        exponent("the approximation error has no power law in n", n, error, NO_POWER),
        exponent(
            "the approximation error grows no faster than ln n", np.log(n), error, (-math.inf, 1.0)
        ),
    ]


def samples_plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Error against n, beside sqrt(ln n)."""
    (ax,) = axes
    n = np.asarray(data["n"].values, dtype=float)
    curve = np.sqrt(np.log(n)) * float(data["mean_approximation_sup"].values[0])
    ax.plot(n, curve / math.sqrt(math.log(n[0])), color="0.45", linestyle=":", label="sqrt(ln n)")
    _curves(data, ax, "n", {"approximation_sup": "mean"}, "samples n")


samples_figure = register(
    Figure(
        id="arda2026/samples",
        title="Approximation error against the number of samples n at fixed width: logarithmic",
        reference="[arda2026, Lemma 5]",
        scales=_sizes(
            {"n": 100, "counts": [25, 50, 100]},
            {"n": 3200, "counts": [50, 200, 800, 3200]},
            {"n": 12800, "counts": [50, 200, 800, 3200, 12800]},
        ),
        trials=samples_trials,
        statistics=samples_statistics,
        verdicts=samples_verdicts,
        plot=samples_plot,
        options=_CHOICES,
    )
)

_TOKEN_ERRORS = {
    "linearisation_sup": "linearisation error",
    "adversarial_sup": "worst linearisation error per input",
    "approximation_sup": "approximation error",
}


def tokens_trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """Three kinds of trials per number of tokens."""
    m, chosen, result = settings["m"], _options(options), []
    for T in settings["tokens"]:
        sizes = {**settings, "T": T}
        for seed in seeds:
            place, group = {"T": T, "seed": seed}, f"T={T}"
            own = training_config(sizes, m, seed, chosen)
            result += [
                Trial(linearisation, linearisation_config(sizes, m, seed), place, group),
                Trial(approximation, approximation_config(sizes, m, seed, chosen), place, group),
                Trial(training, own, place, group),
            ]
    return result


def tokens_statistics(data: xr.Dataset) -> xr.Dataset:
    """Errors and the relative loss against T, with power laws."""
    import xarray as xr

    relative = (data["min_loss"] / data["mean_square_label"]).rename("relative_min_loss")
    shown = [*(data[name] for name in _TOKEN_ERRORS), relative]
    return xr.merge([*map(over_seeds, shown), *(power_law(values, "T") for values in shown)])


def tokens_verdicts(data: xr.Dataset) -> list[Verdict]:
    """No constant of the theory contains T."""
    T = data["T"].values
    found = [
        exponent(f"the {words} does not grow with T", T, _by_seed(data, name, "T"), NO_GROWTH)
        for name, words in _TOKEN_ERRORS.items()
    ]
    relative = _by_seed(data.assign(r=data["min_loss"] / data["mean_square_label"]), "r", "T")
    claim = "the smallest loss, relative to the labels' mean square, does not grow with T"
    return [*found, exponent(claim, T, relative, NO_GROWTH)]


def tokens_plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Errors, and the relative loss."""
    _curves(data, axes[0], "T", _TOKEN_ERRORS, "tokens T")
    _curves(data, axes[1], "T", {"relative_min_loss": "mean"}, "tokens T")
    axes[1].set_ylabel("smallest loss / mean square of the labels")


tokens_figure = register(
    Figure(
        id="arda2026/tokens",
        title="Errors against the number of tokens T: no growth",
        reference="[arda2026, Sec. 4]",
        scales={
            scale: {name: value for name, value in settings.items() if name != "T"}
            for scale, settings in _sizes(
                {"tokens": [4, 16], "steps": 40},
                {"tokens": [4, 16, 64], "steps": 400},
                {"tokens": [4, 16, 64, 256], "n": 2000, "steps": 1000},
            ).items()
        },
        trials=tokens_trials,
        statistics=tokens_statistics,
        verdicts=tokens_verdicts,
        plot=tokens_plot,
        options=_CHOICES,
        layout=(1, 2),
    )
)

RULES = {"ProjGD": None, "ProjSGD": 1}


def projsgd_trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """Both rules at equal tau and eta = 1/sqrt(tau); a ProjSGD step sees one sample."""
    return [
        Trial(
            training,
            {
                **training_config(
                    {**settings, "steps": tau}, settings["m"], seed, _options(options)
                ),
                "batch_size": batch,
            },
            {"rule": rule, "tau": tau, "seed": seed},
            f"{rule} tau={tau}",
        )
        for rule, batch in RULES.items()
        for tau in settings["taus"]
        for seed in seeds
    ]


def projsgd_statistics(data: xr.Dataset) -> xr.Dataset:
    """Mean loss over iterates and smallest loss, per rule."""
    import xarray as xr

    names = ("mean_loss", "min_loss", "average_iterate_loss")
    parts = [over_seeds(data[name]) for name in names]
    return xr.merge([*parts, *(power_law(data[name], "tau") for name in names)])


def projsgd_verdicts(data: xr.Dataset) -> list[Verdict]:
    """Proposition 1 gives ProjSGD, in expectation, the bound of ProjGD at the same tau."""
    tau, found = data["tau"].values, []
    by_rule = {rule: data.sel(rule=rule) for rule in RULES}
    for name in ("mean_loss", "average_iterate_loss"):
        gd, sgd = (_by_seed(by_rule[rule], name, "tau") for rule in RULES)
        ratio = paired_difference(np.log(sgd[:, -1]), np.log(gd[:, -1]))
        claim = f"at the largest tau, {ITERATES[name]}: ProjSGD within a factor 1.5 of ProjGD"
        found.append(inside(claim, ratio, (-math.inf, math.log(1.5)), "log ratio"))
    sgd = _by_seed(by_rule["ProjSGD"], "mean_loss", "tau")
    claim = "ProjSGD: the mean loss over iterates decreases with tau"
    found.append(monotone(claim, tau, sgd, "decreasing"))
    claim = "ProjSGD costs loss: its mean over iterates exceeds that of ProjGD at the largest tau"
    gd = _by_seed(by_rule["ProjGD"], "mean_loss", "tau")
    return [*found, difference(claim, sgd[:, -1], gd[:, -1])]


def projsgd_plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Mean loss over iterates, and the loss of the averaged iterate, of both rules."""
    for ax, name in zip(axes, ("mean_loss", "average_iterate_loss"), strict=True):
        for index, rule in enumerate(RULES):
            chosen = data.sel(rule=rule)
            draw_interval(ax, chosen, f"mean_{name}", "tau", label=rule, index=index)
            draw_power_law(ax, chosen, name, "tau", index=index)
        log_log(ax, "steps tau", f"loss, {ITERATES[name]}")
        tick_at(ax, data["tau"].values)


projsgd_figure = register(
    Figure(
        id="arda2026/projsgd",
        title="ProjGD against ProjSGD (one sample per step) at an equal number of steps",
        reference="[arda2026, Proposition 1]",
        scales=_STEPS,
        trials=projsgd_trials,
        statistics=projsgd_statistics,
        verdicts=projsgd_verdicts,
        plot=projsgd_plot,
        options=_CHOICES,
        layout=(1, 2),
    )
)
