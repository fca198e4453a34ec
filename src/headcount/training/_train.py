"""Training as a user calls it: check, compile once, advance, record, survive."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import optax

from ..core import MEAN_SQUARED, Array, BadArgument, Loss, cast, loss_of, precision, stream
from ..core._checks import check_kind
from ..core._samples import Samples, take_samples
from ..data import PositionalTokens
from ..models._called import differentiated
from ..models._module import as_model, split_module
from ._batches import Batches, Feed
from ._devices import place, sample_mesh
from ._loop import Problem, State
from ._programs import programs
from ._recorders import Recorder, recorders
from ._rules import UpdateRule, as_rule
from ._run import Run
from ._setup import Setup, as_data, as_floats, as_labels
from ._tracers import Tracer, tracers

_ROOM = 1024
"""Most steps in one call of the compiled program; it bounds the loss buffer, nothing else."""
_SECONDS_PER_CALL = 0.5
"""Aim for a call's duration: often enough for a smooth progress bar and a quick stop."""


class Checkpoint(Protocol):
    """Where a long run keeps what it has; `save` decides by itself whether it is time."""

    def restore(self) -> Mapping[str, Array] | None:
        """The arrays saved last, or None."""
        ...

    def save(self, arrays: Callable[[], Mapping[str, Array]]) -> None:
        """Keep arrays(); called often, so the arrays are only made when asked for."""
        ...


Progress = Callable[[int, int, float], None]
"""Called as progress(steps done, steps in all, current loss)."""


def train(
    model: Any,
    initial: Any,
    x: Samples,
    y: Any,
    *,
    rule: UpdateRule | optax.GradientTransformation,
    steps: int,
    loss: Loss | str | Callable[[Any, Any], Any] = MEAN_SQUARED,
    seeds: Sequence[int] | None = None,
    validation: tuple[Samples, Any] | None = None,
    record: str | Recorder | Sequence[str | Recorder] = (),
    record_every: int | None = None,
    trace: str | Tracer | Sequence[str | Tracer] = (),
    keep: str | Sequence[str] = (),
    dtype: str = "float32",
    batches: Batches | None = None,
    chunk: int | None = None,
    tokens: PositionalTokens | None = None,
    devices: int | Sequence[jax.Device] | None = None,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
) -> Run:
    """Train `model` from `initial` on (x, y), one seed or many in one compiled program.

    An equinox module is a model as it is: give it with `initial=None`, and
    `models.split_module(module)[0].module(run.params)` is the trained one.

    A sample is what model(params, sample) takes: x is an array, ids as integers, or a pytree of
    arrays, with the samples as first axis. Outputs are numbers or vectors, y are numbers like
    them, or the classes of `loss="cross-entropy"`; a loss of your own is a function of one
    output and one label.

    For many seeds give `seeds` and parameters with the seeds as first axis (`stack_seeds`); x and
    y may have that axis too, or be shared; the results then have it as well. `record` names
    recorders, run at step 0, every `record_every` steps and at the end. `trace` names tracers:
    numbers at every step that share the gradient's own pass. `keep` may ask for the "average" and
    the "best" iterate. `tokens` is the form that all samples have, which some models' gradients
    use. With `devices` the samples are split over so many (or these) devices. A loss that is not
    finite stops its seed, is recorded, and leaves the other seeds alone. `stop` is asked about
    twice a second: when it says True, the run ends with the steps it has.

    For data that does not fit into memory `batches` brings a pair (x, y) for every step, the same
    for all seeds: an iterable, or a function of the batch number that gives one from there on. A
    resumed run goes on at its batch. x and y are then what recorders and the final loss look at.
    """
    model, initial = as_model(model, initial)
    start = initial if seeds is not None else stack_seeds([initial])
    chosen = loss_of(loss)
    setup = Setup(
        model=model,
        start=jax.tree.map(partial(as_floats, "initial"), start),
        x=as_data("x", x, model),
        y=as_labels("y", y, chosen),
        rule=as_rule(rule),
        steps=steps,
        loss=chosen,
        seeds=tuple(_listed("seeds", seeds)) if seeds is not None else (0,),
        validation=None if validation is None else _validation(validation, model, chosen),
        recorders=_functions("record", recorders, record),
        every=steps if record_every is None else record_every,
        tracers=_functions("trace", tracers, trace),
        keep=_listed("keep", keep),
        dtype=dtype,
        chunk=chunk,
        tokens=tokens,
        mesh=sample_mesh(devices),
        batches=batches,
    )
    with precision(dtype), differentiated(model):
        run = _Trainer(setup, checkpoint, progress, stop).run()
    return run if seeds is not None else run.without_seeds()


def _listed(argument: str, names: Any) -> tuple[Any, ...]:
    """One name or function, or several."""
    if isinstance(names, str) or callable(names):
        return (names,)
    names = names.tolist() if isinstance(names, np.ndarray) else names
    return tuple(check_kind(argument, names, Sequence, fix="give one or a list of them"))


def _functions(argument: str, known: Any, names: Any) -> tuple[Any, ...]:
    """Registered functions by name, or one's own."""
    chosen = tuple(known[n] if isinstance(n, str) else n for n in _listed(argument, names))
    for each in chosen:
        if not callable(each):
            raise BadArgument(argument, each, "is no function", fix=f"use {', '.join(known)}")
    return chosen


def _validation(pair: Any, model: Any, loss: Loss) -> tuple[Samples, Array]:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise BadArgument("validation", pair, "is no pair of samples and labels", fix="give (x, y)")
    return as_data("validation x", pair[0], model), as_labels("validation y", pair[1], loss)


def stack_seeds(trees: Sequence[Any]) -> Any:
    """Join the parameters (or data, or whole modules) of seeds along a new first axis."""
    trees = [split_module(tree)[1] if callable(tree) else tree for tree in trees]
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *trees)


def _held(tree: Any, dtype: str) -> Any:
    """On the device, once for all calls: floats in `dtype`, ids and masks as they are."""

    def leaf(value: Any) -> Any:
        return jnp.asarray(value, jax.dtypes.canonicalize_dtype(value.dtype))

    return jax.tree.map(leaf, cast(tree, dtype))


class _Trainer:
    """Runs the compiled programs until all steps are done."""

    def __init__(
        self,
        setup: Setup,
        checkpoint: Checkpoint | None,
        progress: Progress | None,
        stop: Callable[[], bool] | None,
    ) -> None:
        self.setup, self.checkpoint, self.progress = setup, checkpoint, progress
        self.stop = stop or (lambda: False)
        keys = np.stack([jax.random.key_data(stream(s, "batches")) for s in setup.seeds])
        # The own data of a single seed is passed like shared data: it need not be sliced, so it
        # is not copied.
        alone = len(setup.seeds) == 1 and not setup.shared
        data = take_samples((setup.x, setup.y), 0) if alone else (setup.x, setup.y)
        held_out = setup.held_out(alone)
        self.loop = setup.loop(alone)
        self.programs = programs(self.loop, setup.recorders, _ROOM)
        if setup.mesh is None:
            whole = self.split = partial(_held, dtype=setup.dtype)
        else:
            whole = partial(place, dtype=setup.dtype, mesh=setup.mesh)
            self.split = partial(whole, axis=int(self.loop.by_seed[0]))
        x, y = self.split(data)
        self.problem = Problem(whole(setup.start), x, y, whole(keys), whole(held_out))

    def run(self) -> Run:
        """Advance from record point to record point."""
        began = time.perf_counter()
        steps = self.setup.steps
        every = self.setup.every if self.setup.recorders else steps
        state, done, traces, records = self._restore_or_start()
        feed = None if self.setup.batches is None else Feed(self.setup.batches, done)
        points = sorted({*range(0, steps, every), steps})
        call = 1
        while True:
            if self.setup.recorders and done == points[len(records)]:
                records.append(self._record(state))
            if done >= steps or (done and self.stop()):
                break
            target = min(p for p in points if p > done)
            count = min(call, target - done, _ROOM)
            tick = time.perf_counter()
            if feed is None:
                state, parts = self.programs.advance(self.problem, state, jnp.int32(count))
            else:
                state, parts, count = self._advance_by(feed, state, count)
                if count == 0:
                    break
            for name, part in parts.items():
                traces[name][:, done : done + count] = np.asarray(part)[:, :count]
            spent = time.perf_counter() - tick
            call = max(1, min(_ROOM, round(count * min(4.0, _SECONDS_PER_CALL / max(spent, 1e-6)))))
            done += count
            self._tell(done, traces["loss"])
            if self.checkpoint is not None:
                self.checkpoint.save(partial(self._pack, state, done, traces, records))
        cut = {name: np.delete(trace, np.s_[done:-1], axis=1) for name, trace in traces.items()}
        return self._result(state, done, cut, points[: len(records)], records, began)

    def _advance_by(
        self, feed: Feed, state: State, count: int
    ) -> tuple[State, dict[str, Array], int]:
        """Up to `count` steps, each on the next batch, and how many there were."""
        losses: list[Any] = []
        while len(losses) < count:
            batch = feed.take(self.setup.steps)
            if batch is None:
                break
            x, y = self.setup.batch(feed.position - 1, *batch)
            step = programs(replace(self.loop, n=len(y), by_seed=(False, False)), (), 1).advance
            held_x, held_y = self.split((x, y))
            shown = self.problem._replace(x=held_x, y=held_y, validation=None)
            state, traces = step(shown, state, jnp.int32(1))
            losses.append(traces["loss"])
        return state, {"loss": np.concatenate(losses, axis=1)} if losses else {}, len(losses)

    def _tell(self, done: int, trace: Array) -> None:
        if self.progress is not None:
            shown = trace[:, done - 1]
            finite = shown[np.isfinite(shown)]
            self.progress(done, self.setup.steps, float(finite.mean()) if finite.size else np.nan)

    def _result(
        self,
        state: State,
        done: int,
        traces: dict[str, Array],
        points: list[int],
        records: list[Any],
        began: float,
    ) -> Run:
        state = jax.device_get(state)
        final = jax.device_get(self.programs.evaluate(self.problem, state.params))
        just_now = (state.diverged_at < 0) & ~np.isfinite(final)
        diverged_at = np.where(just_now, done, state.diverged_at)
        stacked = {
            name: np.stack([r[name] for r in records], axis=1) for name in (records or [{}])[0]
        }
        return Run(
            settings={**self.setup.describe(), "steps": done},
            seeds=self.setup.seeds,
            loss=traces.pop("loss")[:, :-1],
            traces=self._finished(traces, state),
            final_loss=np.where(diverged_at < 0, final, np.nan),
            average_loss=None
            if state.average is None
            else jax.device_get(self.programs.evaluate(self.problem, state.average)),
            recorded_steps=np.array(points if records else [], int),
            records=stacked,
            params=state.params,
            average=state.average,
            best=state.best,
            initial=jax.device_get(self.problem.start),
            diverged_at=diverged_at,
            seconds=time.perf_counter() - began,
        )

    def _record(self, state: State) -> dict[str, Array]:
        return jax.device_get(self.programs.snapshot(self.problem, state.params))

    def _finished(self, traces: dict[str, Array], state: State) -> dict[str, Array]:
        """The traces with what they note after the last step; seeds that diverged keep NaN."""
        if traces:
            last = jax.device_get(self.programs.observe(self.problem, state.params))
            for name, trace in traces.items():
                trace[:, -1] = np.where(state.diverged_at < 0, last[name], np.nan)
        return traces

    def _restore_or_start(self) -> tuple[State, int, dict[str, Array], list[Any]]:
        state = self.programs.start(self.problem.start)
        shape = (len(self.setup.seeds), self.setup.steps + 1)
        noted = ("loss",)
        if self.setup.tracers:
            noted = tuple(jax.eval_shape(self.programs.observe, self.problem, state.params))
        traces = {name: np.full(shape, np.nan, self.setup.dtype) for name in noted}
        saved = self.checkpoint.restore() if self.checkpoint is not None else None
        if saved is None:
            return state, 0, traces, []
        leaves, structure = jax.tree.flatten(state)
        kept = [jnp.asarray(saved[f"state_{i}"]) for i in range(len(leaves))]
        done = int(saved["done"])
        for name, trace in traces.items():
            trace[:, :done] = saved[f"trace_{name}"]
        names = sorted(k.removeprefix("record_") for k in saved if k.startswith("record_"))
        count = int(saved["records"])
        records = [{name: saved[f"record_{name}"][i] for name in names} for i in range(count)]
        return jax.tree.unflatten(structure, kept), done, traces, records

    def _pack(
        self, state: State, done: int, traces: dict[str, Array], records: list[Any]
    ) -> dict[str, Array]:
        arrays = {f"state_{i}": np.asarray(v) for i, v in enumerate(jax.tree.leaves(state))}
        arrays |= {f"trace_{name}": trace[:, :done].copy() for name, trace in traces.items()}
        for name in (records or [{}])[0]:
            arrays[f"record_{name}"] = np.stack([r[name] for r in records])
        counts = {"done": np.asarray(done), "records": np.asarray(len(records))}
        return {**arrays, **counts}
