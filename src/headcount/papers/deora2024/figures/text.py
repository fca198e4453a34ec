"""What the figures on text share: options, the model and the data of this machine, their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....lab import COLOURS

if TYPE_CHECKING:
    import xarray as xr

OPTIONS: dict[str, tuple[str, ...]] = {
    "model": ("auto", "minilm", "roberta-base", "folder", "tiny"),
    "data": ("auto", "sst2-sentences", "sst2-phrases", "imdb", "templates"),
    "heads": ("mask", "resplit"),
    "pooling": ("auto", "mean", "first"),
    "rate": ("paper", "2e-5", "1e-4"),
}
MODELS = {
    "minilm": "all-MiniLM-L6-v2",
    "roberta-base": "roberta-base",
    "tiny": "a tiny RANDOM encoder, nothing pretrained",
    "folder": "a checkpoint of the user's",
}
DATA = {
    "sst2-sentences": "SST-2 sentences",
    "sst2-phrases": "SST-2 phrases (GLUE)",
    "imdb": "IMDB reviews",
    "templates": "made-up sentences that ship with Headcount",
}
RULES = {"mask": "the first h heads speak, the others are muted", "resplit": "width cut into h"}
PAPER_RATE = 5e-6


def text_setting(
    settings: Mapping[str, Any], options: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """What all trials share, and the coordinates that say which model, data and heads."""
    from ....data import chosen_reviews, find_checkpoint

    anything = settings["without_files"] == "made up"
    model = find_checkpoint(options["model"], tiny=anything).identity
    data = chosen_reviews(options["data"], templates=anything)
    rate = PAPER_RATE if options["rate"] == "paper" else float(options["rate"])
    shared = {
        **{name: settings[name] for name in ("sentences", "validated", "epochs", "batch_size")},
        "model": model,
        "data": data,
        "head_rule": options["heads"],
        "pooling": options["pooling"],
        "longest": settings["longest"],
        # A random encoder at the rate of a pretrained one does not move in a smoke test.
        "eta": 200 * rate if model == "tiny" else rate,
        "weight_decay": 0.01,
    }
    return shared, {"model": model, "data": data, "heads": options["heads"]}


def one_setting(data: xr.Dataset) -> xr.Dataset:
    """Without the dimensions that say which model, data and heads were used."""
    return data.isel(model=0, data=0, heads=0, drop=True)


def draw_by_heads(
    data: xr.Dataset, axes: Sequence[Any], panels: Mapping[str, str], style: str = "-"
) -> None:
    """One panel for each of `panels` (name: label) against the epoch, one curve for each h."""
    one = one_setting(data)
    for ax, (name, label) in zip(axes, panels.items(), strict=True):
        for index, h in enumerate(one["h"].values):
            curve, epoch = one.sel(h=h), one["epoch"].sel(h=h).isel(seed=0).values
            low, high = (curve[f"mean_{name}_{end}"].values for end in ("low", "high"))
            colour = COLOURS[index % len(COLOURS)]
            ax.plot(epoch, curve[f"mean_{name}"].values, style, color=colour, label=f"h = {h}")
            ax.fill_between(epoch, low, high, color=colour, alpha=0.15, linewidth=0)
        ax.set_xlabel("epoch")
        ax.set_ylabel(label)
    axes[0].legend(fontsize=7)
    _say_which_text(data, axes)


def _say_which_text(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Model, data and the meaning of h on the figure's face."""
    model, name, rule = (str(data[key].values.ravel()[0]) for key in ("model", "data", "heads"))
    words = f"{MODELS[model.partition(':')[0]]}; {DATA[name]}; {RULES[rule]}"
    axes[0].figure.suptitle(words, fontsize=7)
