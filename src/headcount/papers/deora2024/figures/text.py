"""What the figures on text share: options, the model and the data of this machine, their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float, Int

from ....core import Array, BadArgument
from ....lab import COLOURS, Context, Measurement, Trial
from ....lab._drawing import draw_band

if TYPE_CHECKING:
    import xarray as xr

    from ....models.text import TextClassifier, TextParams
    from ....training._finetuning import FineTuning

Seen: TypeAlias = list[tuple[float, float]]


class Task(NamedTuple):
    """A classifier, its start, and tokenised sentences; only words that occur have rows."""

    model: TextClassifier
    params: TextParams
    train: list[list[int]]
    labels: Int[Array, "n"]
    validation: list[list[int]]
    validation_labels: Int[Array, "k"]
    truncated: int


def load_task(config: Mapping[str, Any]) -> Task:
    """The task of a trial: `sentences` of the training split, the whole validation split or less.

    Every seed has its own subset, its own new read-out and its own order.
    """
    from ....data._checkpoints import located
    from ....data._reviews import load_reviews, some_reviews
    from ....data._tokens import restrict_vocabulary

    seed, name = config["seed"], config["data"]
    train = some_reviews(load_reviews(name, "train"), config["sentences"], seed)
    held_out = some_reviews(load_reviews(name, "validation"), config["validated"], 0)
    folder = located(config["model"])
    model, params, tokens = encoder_of(folder, [*train.sentences, *held_out.sentences], config)
    count = len(train.labels)
    used, (own, other) = restrict_vocabulary(tokens.numbers[:count], tokens.numbers[count:])
    words = params.embedding.words[used]
    params = params._replace(embedding=params.embedding._replace(words=words))
    model = model.with_heads(config["h"], config["head_rule"])
    return Task(model, params, own, train.labels, other, held_out.labels, tokens.truncated)


def encoder_of(
    folder: Any, sentences: list[str], config: Mapping[str, Any]
) -> tuple[TextClassifier, TextParams, Any]:
    """Classifier, parameters and token numbers: pretrained, or the tiny random encoder."""
    from ....data import tokenise
    from ....data._tokens import tokenise_words
    from ....models.text import load_checkpoint, random_encoder

    pooling, seed = config["pooling"], config["seed"]
    if folder is None:
        model, params = random_encoder(seed=seed)
    else:
        model, params = load_checkpoint(folder, seed=seed, pooling=pooling)
    longest = min(config["longest"], model.longest)
    sizes = {"vocabulary": len(params.embedding.words), "longest": longest}
    if folder is None:
        return model, params, tokenise_words(sentences, **sizes)
    return model, params, tokenise(folder, sentences, **sizes)


def measure_finetuning(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """Loss and accuracy on the batches as they come and on the validation split, along training.

    Training numbers are means over the batches since the last record, before each update.
    """
    from ....training._finetuning import losses_and_hits

    task = load_task(config)
    training = training_of(config, task)
    labels = task.validation_labels.astype(np.int32)

    def look(params: TextParams, seen: Seen) -> dict[str, float]:
        losses, hits = losses_and_hits(training.outputs(params, task.validation), labels)
        loss, accuracy = np.mean(seen, axis=0) if seen else (np.nan, np.nan)
        return {
            "train_loss": loss,
            "train_accuracy": accuracy,
            "validation_loss": float(np.mean(np.asarray(losses))),
            "validation_accuracy": float(np.mean(np.asarray(hits))),
        }

    return {
        **follow(config, context, training, task, look),
        "truncated": task.truncated,
        "longest_sentence": max(len(line) for line in (*task.train, *task.validation)),
    }


def training_of(config: Mapping[str, Any], task: Task) -> FineTuning:
    """AdamW with the numbers of the trial."""
    from ....training import adamw
    from ....training._finetuning import FineTuning

    rule = adamw(config["eta"], config["weight_decay"], batch_size=config["batch_size"])
    return FineTuning(task.model, rule)


def follow(
    config: Mapping[str, Any],
    context: Context,
    training: FineTuning,
    task: Task,
    look: Callable[[TextParams, Seen], dict[str, float]],
) -> dict[str, Any]:
    """Fine-tune, and `look(params, seen)` at the start and `records` times, evenly spread.

    `seen` holds loss and share of right answers of the batches since the last look. A run that
    diverges keeps what it has; the rest is NaN.
    """
    from ....core import stream

    steps = config["epochs"] * -(-len(task.labels) // config["batch_size"])
    if config["records"] > steps:
        problem = f"exceeds the {steps} steps of the run"
        raise BadArgument("records", config["records"], problem, fix="train longer")
    at = np.linspace(0, steps, config["records"] + 1).round().astype(int)
    state = training.start(task.params)
    seen: Seen = []
    first = look(state.params, seen)
    rows = [list(first.values())]
    saved = context.restore()
    if saved is not None:
        state, rows = unpacked(saved, state), saved["rows"].tolist()
    key = stream(config["seed"], "fine-tuning", "order")
    for step, batch in enumerate(training.order(task.train, key, config["epochs"]), 1):
        if step <= int(state.step):
            continue
        state, loss, right = training.step(state, batch, task.labels)
        seen.append((float(loss), float(right)))
        context.progress(step, steps, loss=seen[-1][0])
        if not np.isfinite(seen[-1][0]):
            context.diverged(f"the loss is not finite at step {step}")
            break
        if step in at:
            rows.append(list(look(state.params, seen).values()))
            seen = []
            if context.checkpoint_due():
                context.checkpoint({"rows": np.array(rows), **packed(state)})
    table = np.full((len(at), len(first)), np.nan)
    table[: len(rows)] = rows
    curves = {name: table[:, i] for i, name in enumerate(first)}
    return {**curves, "epoch": at * config["epochs"] / steps, "record": np.arange(len(at))}


def packed(state: Any) -> dict[str, Float[Array, "..."]]:
    """The leaves of a state by number, for a checkpoint."""
    import jax

    return {f"state_{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(state))}


def unpacked(saved: Mapping[str, Any], like: Any) -> Any:
    """The state of a checkpoint."""
    import jax
    import jax.numpy as jnp

    leaves, structure = jax.tree.flatten(like)
    kept = [
        jnp.asarray(saved[f"state_{i}"], leaf.dtype).reshape(leaf.shape)
        for i, leaf in enumerate(leaves)
    ]
    return jax.tree.unflatten(structure, kept)


_SIZES = {"sst2-sentences": 6920, "sst2-phrases": 67349, "imdb": 25000, "templates": 2304}


def _cost(config: dict[str, Any]) -> tuple[float, float]:
    """Half a second for a batch of 32 sentences of MiniLM on one thread; RoBERTa 8 times that."""
    if config["model"] == "tiny":
        return 5.0, 4e8
    large = 8.0 if config["model"] == "roberta-base" else 1.0
    words = 12.0 if config["data"] == "imdb" else 0.5 if config["data"] == "sst2-phrases" else 1.0
    trained = config["epochs"] * min(config["sentences"], _SIZES[config["data"]])
    seen = 0.3 * config["records"] * config["validated"]
    return 20.0 + large * words * (trained + seen) / 64, large * 1.5e9


finetuning = Measurement(
    name="deora2024-finetuning",
    version=1,
    function=measure_finetuning,
    outputs={
        **dict.fromkeys(
            ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "epoch"),
            ("record",),
        ),
        "record": ("record",),
        "truncated": (),
        "longest_sentence": (),
    },
    estimate=_cost,
    may_be_nan=("train_loss", "train_accuracy"),  # no batch was seen before the first record
)


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
    from ....data._checkpoints import planned_checkpoint
    from ....data._reviews import chosen_reviews

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
    from ....data._checkpoints import located
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
    from ....data._checkpoints import located
    from ....data._reviews import chosen_reviews

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
            draw_band(ax, epoch, low, high, colour)
        ax.set_xlabel("epoch")
        ax.set_ylabel(label)
    axes[0].legend(fontsize=7)
    _say_which_text(data, axes)


def _say_which_text(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Model, data and the meaning of h on the figure's face."""
    model, name, rule = (str(data[key].values.ravel()[0]) for key in ("model", "data", "heads"))
    words = f"{MODELS[model.partition(':')[0]]}; {DATA[name]}; {RULES[rule]}"
    axes[0].figure.suptitle(words, fontsize=7)
