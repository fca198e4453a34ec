"""One fine-tuning run of a pretrained encoder with h heads [deora2024, Fig. 6, App. G]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float, Int

from ....core import Array, BadArgument
from ....lab import Context, Measurement

if TYPE_CHECKING:
    from ....models.text import TextClassifier, TextParams
    from ....training import FineTuning

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
    from ....data import load_reviews, located, restrict_vocabulary, some_reviews

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
    from ....data import tokenise, tokenise_words
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
    from ....training import losses_and_hits

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
    from ....training import FineTuning, adamw

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
