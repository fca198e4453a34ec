"""What the figures on images share: scales, options, trials, and the name of the data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from ....core import Array
from ....lab import Context, Figure, Finding, Measurement, Trial, open_choices, register
from ....lab._drawing import NOT_NEGATIVE
from .curves import SCALINGS, STYLES, draw_curve, finish
from .tails import QUANTILES, TAIL_OUTPUTS, tail_of

if TYPE_CHECKING:
    import xarray as xr


PATCH = {"mnist": 7, "digits": 2}
"""Side of a patch: 16 tokens from 28 x 28 and from 8 x 8 images."""
WIDTH = "1024"
"""Of the figures whose width the paper does not name: at smoke scale it is smaller."""
WATCHED = 500
"""Test images whose attention is looked at, after every epoch for being finite."""


class Task(NamedTuple):
    """Patches and labels to train on and to test with; labels are digits, or -1 and +1."""

    x: Float[Array, "n T p"]
    y: Array
    x_test: Float[Array, "k T p"]
    y_test: Array
    outputs: int


def load_task(dataset: str, task: str, limit: int) -> Task:
    """The images of a task; at most `limit` of each split, the first ones."""
    from ....data import load_images, patches

    digits = (0, 1) if task == "zero-one" else None

    def part(split: str) -> tuple[Array, Array]:
        images, labels = load_images(dataset, split, digits)
        labels = np.where(labels[:limit] == 1, 1.0, -1.0) if digits else labels[:limit]
        return patches(images[:limit], PATCH[dataset]), labels

    return Task(*part("train"), *part("test"), 1 if digits else 10)


def measure_vit(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """Loss, errors and accuracy after every epoch; attention and token tails before and after.

    Losses and errors on the training side are over its first `evaluated` images, without any
    update in between. `sign_error` is sum (sign f - y)^2 over them, for labels -1 and +1.
    """
    import jax
    import jax.numpy as jnp

    from ....core import precision, stream
    from ....training import EpochTraining, cross_entropy, sign_regression
    from ....training._epochs import EpochState
    from ..model import softmax_scale
    from ..vit import VisionTransformer, collapse, vision_start

    seed, epochs, d_m = config["seed"], config["epochs"], config["d_m"]
    own = load_task(config["dataset"], config["task"], config["images"])
    _, T, p = own.x.shape
    tau0 = softmax_scale(config["scaling"], d_m)
    choices = config["block"], config["readout"], config.get("tau1", 1.0)
    wide = VisionTransformer(p, T, config["d"], d_m, tau0, own.outputs, *choices)
    narrow = collapse(wide, vision_start(wide, seed, config["init"]))
    loss = sign_regression if config["task"] == "zero-one" else cross_entropy
    training = EpochTraining(
        narrow.model, loss, config["eta"], config["beta"], config["batch_size"],
        falling_over=epochs if config.get("schedule") == "cosine" else 0,
    )  # fmt: skip
    with precision(config["dtype"]):
        x, x_test = jnp.asarray(own.x, config["dtype"]), jnp.asarray(own.x_test, config["dtype"])
        kind = config["dtype"] if config["task"] == "zero-one" else "int32"
        y, y_test = jnp.asarray(own.y, kind), jnp.asarray(own.y_test, kind)
        state = first = training.start(narrow.params, config["dtype"])
        shown, watched = slice(config["evaluated"]), x_test[:WATCHED]
        maps = jax.jit(jax.vmap(narrow.model.attention, in_axes=(None, 0)))
        rows = [_scores(training, state.params, x[shown], y[shown], x_test, y_test)]
        saved = context.restore()
        if saved is not None:
            rows = list(saved["rows"])
            state = EpochState(*_unpacked(saved, state))
        for epoch in range(len(rows), epochs + 1):
            state, _ = training.advance(state, x, y, stream(seed, "wu2023-vit", "batches"))
            # A compiled relu may turn NaN into zero: seen with NaN in every weight and loss 2.30.
            if not np.isfinite(np.asarray(maps(state.params, watched))).all():
                context.diverged(f"the attention is not finite after epoch {epoch}")
                break
            rows.append(_scores(training, state.params, x[shown], y[shown], x_test, y_test))
            context.progress(epoch, epochs, loss=float(rows[-1][0]))
            if not np.isfinite(rows[-1][0]):
                context.diverged(f"the loss is not finite after epoch {epoch}")
                break
            if context.checkpoint_due():
                context.checkpoint({"rows": np.array(rows), **_packed(state)})
        table = np.full((epochs + 1, len(rows[0])), np.nan)
        table[: len(rows)] = rows
        names = ("loss", "train_error", "sign_error", "test_accuracy")
        return {
            "epoch": np.arange(epochs + 1),
            **{name: table[:, i] for i, name in enumerate(names)},
            **_attention(maps(first.params, watched), maps(state.params, watched), watched[0]),
            **_tails(narrow.model, first.params, state.params, own.x, seed, config["pairs_of"]),
        }


def _scores(
    training: Any, params: Any, x: Array, y: Array, x_test: Array, y_test: Array
) -> Float[Array, "4"]:
    """Training loss, training error, sum (sign f - y)^2, test accuracy."""
    f = training.outputs(params, x)
    loss = np.mean(np.asarray(training.losses(f, y)), dtype=np.float64)
    wrong = predicted(np.asarray(f)) != np.asarray(y)
    right = predicted(np.asarray(training.outputs(params, x_test))) == np.asarray(y_test)
    sign_error = 4.0 * np.sum(wrong) if f.shape[1] == 1 else np.nan
    return np.array([loss, np.mean(wrong), sign_error, np.mean(right)])


def predicted(f: Float[Array, "n outputs"]) -> Array:
    """The class of the largest output; for one output its sign, with sign(0) = 1."""
    return np.where(f[:, 0] >= 0, 1.0, -1.0) if f.shape[1] == 1 else np.argmax(f, axis=1)


def _attention(
    before: Float[Array, "k S S"], after: Float[Array, "k S S"], image: Float[Array, "T p"]
) -> dict[str, Any]:
    """Attention maps of the first image, and how far rows moved (half the l1 distance), on k."""
    old, new = np.asarray(before), np.asarray(after)
    return {
        "attention_before": old[0],
        "attention_after": new[0],
        "attention_change": np.mean(np.sum(np.abs(new - old), axis=-1)) / 2,
        "attention_unevenness": np.mean(np.sum(np.abs(new - 1 / len(image)), axis=-1)) / 2,
        "image": image,
    }


def _tails(model: Any, before: Any, after: Any, x: Array, seed: int, count: int) -> dict[str, Any]:
    """Assumption 3 on the tokens of `count` random training images, |X|_F = 1 each."""
    from ....core import integers, stream

    chosen = integers(stream(seed, "wu2023-vit", "pairs"), (count,), len(x))
    found: dict[str, Any] = {"tail_point": np.arange(QUANTILES)}
    for when, params in (("before", before), ("after", after)):
        tokens = np.stack([model.tokens(params, one) for one in np.asarray(x)[chosen]])
        found |= {f"{name}_{when}": value for name, value in tail_of(tokens).items()}
    return found


def _packed(state: Any) -> dict[str, Array]:
    import jax

    return {f"state_{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(state))}


def _unpacked(saved: Any, like: Any) -> Any:
    import jax
    import jax.numpy as jnp

    leaves, structure = jax.tree.flatten(like)
    kept = [jnp.asarray(saved[f"state_{i}"]) for i in range(len(leaves))]
    return jax.tree.unflatten(structure, kept)


def _cost(config: dict[str, Any]) -> tuple[float, float]:
    """2.6 s for an epoch of 60000 images on one thread, whatever d_m; drawing and QR of d_m."""
    count = min(config["images"], 60000 if config["dataset"] == "mnist" else 1500)
    if config["task"] == "zero-one":
        count = count // 5
    setup = 6.0 + 1e-4 * config["d_m"]
    return setup + config["epochs"] * 2.6 * count / 60000, 6e8 + 3e4 * count


vit = Measurement(
    name="wu2023-vit",
    version=3,
    function=measure_vit,
    outputs={
        "epoch": ("epoch",),
        "loss": ("epoch",),
        "train_error": ("epoch",),
        "sign_error": ("epoch",),
        "test_accuracy": ("epoch",),
        "attention_before": ("query", "key"),
        "attention_after": ("query", "key"),
        "attention_change": (),
        "attention_unevenness": (),
        "image": ("patch", "pixel"),
        "tail_point": ("tail_point",),
        **{f"{name}_{w}": d for w in ("before", "after") for name, d in TAIL_OUTPUTS.items()},
    },
    estimate=_cost,
    may_be_nan=("sign_error", "tail_exponent_before", "tail_exponent_after"),
)


def vit_config(
    settings: Mapping[str, Any],
    options: Mapping[str, str],
    dataset: str,
    task: str,
    d_m: int,
    scaling: str,
    seed: int,
) -> dict[str, Any]:
    """Everything that a run depends on; the constants are those of Sec. 5.2 and our readings."""
    return {
        "dataset": dataset,
        "task": task,
        "images": settings["images"],
        "evaluated": settings["evaluated"],
        "pairs_of": settings["pairs_of"],
        "epochs": settings["epochs"],
        "batch_size": round(float(options["batch"]) * settings["batch_size"]),
        "d": 64,
        "d_m": d_m,
        "scaling": scaling,
        **{name: options[name] for name in ("block", "readout", "init")},
        **({"tau1": d_m**-0.5} if options["outside"] == "ntk" else {}),
        **({"schedule": "cosine"} if options["schedule"] == "cosine" else {}),
        "eta": 0.1,
        "beta": 0.9,
        "seed": seed,
        "dtype": "float32",
    }


OPTIONS = {"dataset": ("auto", "mnist", "digits")}
TITLES = {"mnist": "MNIST", "digits": "UCI digits 8x8 (ships with Headcount)"}
NOTES = (
    "Given in Sec. 5.2: ViT [Dosovitskiy et al., 2021], one layer, one head, d = 64, widths, step "
    "0.1, momentum 0.9, 50 epochs, 3 runs. From what it cites: patch embedding, learned positions, "
    "pre-layer-norm, residual, MLP of 4 d units with gelu. Ours where both are silent: 7x7 patches "
    "(16 tokens), pixels in [0, 1], mean over tokens (Sec. 3.2) in place of a class token, LeCun "
    "initialisation, cross-entropy, batches of 128 without replacement. block=relu is Eq. (1.2) "
    "with a trained W_H. Losses are over the first training images, after each epoch."
)


def image_scales(**paper: Any) -> dict[str, dict[str, Any]]:
    """The scales of a figure; `paper` has what differs between figures, such as the widths."""
    smoke = {"images": 160, "evaluated": 100, "pairs_of": 20, "epochs": 2, "batch_size": 32}
    # Batches as at paper scale: of 32 the same steps leave the narrow ones near chance.
    quick = {"images": 6000, "evaluated": 2000, "pairs_of": 100, "epochs": 20, "batch_size": 128}
    full = {"images": 60000, "evaluated": 10000, "pairs_of": 100, "epochs": 50, "batch_size": 128}
    small = [16, 64] if len(paper["widths"]) > 1 else [64]
    return {
        "smoke": {"seeds": 2, **smoke, "widths": small},
        "quick": {"seeds": 3, **quick, **paper},
        "paper": {"seeds": 3, **full, **paper},
    }


def image_trials(
    settings: Mapping[str, Any],
    seeds: Sequence[int],
    options: Mapping[str, str],
    task: str = "classes",
    scalings: Iterable[str] = SCALINGS,
    **changed: Any,
) -> list[Trial]:
    """One run per width, scaling and seed, on the data that this machine has."""
    from ....data._images import chosen_images

    dataset = chosen_images(options["dataset"], download=False)
    wide = options.get("width", WIDTH)
    widths = settings["widths"] if wide == WIDTH else [int(wide)]
    result = []
    for d_m in widths:
        for scaling in scalings:
            for seed in seeds:
                config = vit_config(settings, options, dataset, task, d_m, scaling, seed)
                place = {"dataset": dataset, "d_m": d_m, "scaling": scaling, "seed": seed}
                group = f"{task} d_m={min(d_m, 128)} {scaling} {d_m}"
                result.append(Trial(vit, {**config, **changed}, place, group))
    return result


def fetch_images(trials: Sequence[Trial]) -> None:
    """Download MNIST where it was asked for by name and is not at hand."""
    from ....data._images import chosen_images

    for dataset in {str(trial.config["dataset"]) for trial in trials}:
        chosen_images(dataset)


def only_dataset(data: xr.Dataset) -> xr.Dataset:
    """Without the dimension that says which images were used."""
    return data.isel(dataset=0, drop=True) if "dataset" in data.dims else data


def image_figure(
    number: int,
    title: str,
    *,
    place: str,
    widths: Sequence[int],
    statistics: Callable[[xr.Dataset], xr.Dataset],
    verdicts: Callable[[xr.Dataset], list[Finding]],
    plot: Callable[[xr.Dataset, Sequence[Any]], None],
    trials: Callable[..., list[Trial]] = image_trials,
    evaluated: int | None = None,
    layout: tuple[int, int] = (1, 2),
    notes: str = "",
) -> Figure:
    """Register a figure on images; its functions see the data without the set's name."""

    def with_title(data: xr.Dataset, axes: Sequence[Any]) -> None:
        plot(only_dataset(data), axes)
        name = TITLES[str(data["dataset"].values.ravel()[0])]
        axes[0].figure.suptitle(f"data: {name}", fontsize=7)

    scales = image_scales(widths=list(widths), **({"evaluated": evaluated} if evaluated else {}))
    return register(
        Figure(
            id=f"wu2023/fig{number}",
            title=title,
            reference=f"[wu2023, Fig. {number}, {place}]",
            scales=scales,
            trials=trials,
            statistics=lambda data: statistics(only_dataset(data)),
            verdicts=lambda data: verdicts(only_dataset(data)),
            plot=with_title,
            prepare=fetch_images,
            options=OPTIONS,
            axes=open_choices("headcount.papers.wu2023:choices.toml", f"fig{number}"),
            layout=layout,
            notes=f"{NOTES} {notes}".strip(),
        )
    )


def average_log_ratio(data: xr.Dataset, name: str) -> Any:
    """Mean over epochs >= 1 of log(1/d_m's value / d_m^(-1/2)'s), (seed, width)."""
    values = data[name].sel(epoch=data["epoch"] > 0)
    slow, fast = (
        values.sel(scaling=scaling).transpose("seed", "d_m", "epoch").values
        for scaling in ("ntk", "realistic")
    )
    return np.mean(np.log(slow) - np.log(fast), axis=-1)


def draw_scalings(
    ax: Any, data: xr.Dataset, name: str, within: tuple[float, float] = NOT_NEGATIVE
) -> None:
    """One curve per width and scaling against the epoch, bands cut off at `within`."""
    for index, d_m in enumerate(data["d_m"].values):
        for scaling, words in SCALINGS.items():
            one = data.sel(d_m=d_m, scaling=scaling)
            label = f"$d_m$ = {d_m}, {words}"
            # Of one width the scalings differ in colour, too: they lie on each other.
            shade = index if data.sizes["d_m"] > 1 else list(SCALINGS).index(scaling)
            look: Any = {"label": label, "index": shade, "style": STYLES[scaling]}
            draw_curve(ax, one, name, "epoch", within=within, **look)
    finish(ax, "epoch", "")
