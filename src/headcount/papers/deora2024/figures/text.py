"""What the figures on text share: options, the model and the data of this machine, their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....core import BadArgument
from ....lab import COLOURS, Trial
from ..measurements.finetune import encoder_of

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
    from ....data import chosen_reviews, planned_checkpoint

    model = planned_checkpoint(options["model"], tiny=True)
    data = chosen_reviews(options["data"], download=False)
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


def head_counts(settings: Mapping[str, Any], shared: Mapping[str, Any]) -> list[int]:
    """The scale's numbers of heads; of a user's encoder, those that it can have, and all of its."""
    from ....data import located
    from ....models.text import read_config

    wanted, model = list(settings["head_counts"]), shared["model"]
    folder = located(model) if model.startswith("folder:") else None
    if folder is None:
        return wanted
    config = read_config(folder)
    total = config.num_attention_heads
    if total == 1:
        fix = "a figure about the number of heads needs an encoder with several"
        raise BadArgument("model", "folder", f"{folder} has one head", fix=fix)
    masked = shared["head_rule"] == "mask"
    return [*(h for h in wanted if h < total and (masked or config.hidden_size % h == 0)), total]


def fetch_text(trials: Sequence[Trial]) -> None:
    """Download what was asked for by name; then read it once, so that a bad file stops the run."""
    from ....data import chosen_reviews, located

    for data in {str(trial.config["data"]) for trial in trials}:
        chosen_reviews(data)
    by_heads = {(trial.config["model"], trial.config["h"]): trial.config for trial in trials}
    for (model, h), config in by_heads.items():
        classifier, _, _ = encoder_of(located(model), ["a sentence"], config)
        classifier.with_heads(h, config["head_rule"])


def made_up(trials: Sequence[Trial]) -> str:
    """What stands in for a pretrained encoder or for real sentences; empty: nothing does."""
    shared = trials[0].config
    words = []
    if shared["model"] == "tiny":
        words.append(MODELS["tiny"])
    if shared["data"] == "templates":
        words.append(DATA["templates"])
    return "; ".join(words)


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
            # What is drawn has no negative values, and shares none above one.
            most = 1.0 if name.endswith("accuracy") else None
            low, high = low.clip(0.0, most), high.clip(0.0, most)
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
