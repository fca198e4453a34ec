"""Spaces made of others: products, parameters of a registered model, constants by name."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..core import Array, BadArgument, check_positive, float64
from ..training import recipe_of
from ._possible_sizes import first_possible, refusal
from ._spaces import Axis, Size, Sizes, Space, below, check_axes, length
from ._spaces_text import latex_array, latex_name
from .families import into_ball


class Product(Space):
    """Points of several spaces together, as a tuple: a variable that is one thing to the lemma."""

    def __init__(self, *spaces: Space) -> None:
        for space in spaces:
            if not isinstance(space, Space):
                raise BadArgument("product", space, "is no space", fix="use Reals, Ball, ...")
        self.spaces = {str(k): space for k, space in enumerate(spaces)}
        self.discrete = all(space.discrete for space in spaces)  # type: ignore[misc]

    @property
    def blocks(self) -> dict[str, tuple[Axis, ...]]:
        return self._joined({k: space.blocks for k, space in self.spaces.items()})

    @property
    def sizes(self) -> dict[str, Size]:
        return {n: size for space in self.spaces.values() for n, size in space.sizes.items()}

    def refuses(self, sizes: Sizes) -> str | None:
        return refusal(self.spaces.values(), sizes)

    def outside(self, raw: Mapping[str, Any], sizes: Sizes) -> str | None:
        parts = (s.outside(self._of(k, raw), sizes) for k, s in self.spaces.items())
        return next(filter(None, parts), None)

    def draw(self, rng: np.random.Generator, count: int, sizes: Sizes) -> dict[str, Array]:
        return self._joined({k: s.draw(rng, count, sizes) for k, s in self.spaces.items()})

    def inside(self, raw: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
        parts = {k: s.inside(self._of(k, raw), sizes) for k, s in self.spaces.items()}
        return self._joined(parts)

    def point(self, raw: Mapping[str, Any], sizes: Sizes) -> Any:
        return tuple(space.point(self._of(k, raw), sizes) for k, space in self.spaces.items())

    def python(self, name: str, raw: Mapping[str, Any]) -> list[str]:
        parts = [s.python(f"{name}_{k}", self._of(k, raw)) for k, s in self.spaces.items()]
        names = "".join(f"{name}_{k}, " for k in self.spaces)
        return [*(line for part in parts for line in part), f"{name} = ({names.strip()})"]

    def latex(self, name: str, raw: Mapping[str, Any]) -> list[str]:
        parts = [s.latex(f"{name}_{k}", self._of(k, raw)) for k, s in self.spaces.items()]
        return [line for part in parts for line in part]

    def _of(self, k: str, raw: Mapping[str, Any]) -> dict[str, Any]:
        return {name: raw[below(k, name)] for name in self.spaces[k].blocks}

    @staticmethod
    def _joined(parts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        return {below(k, name): v for k, part in parts.items() for name, v in part.items()}


class NearStart(NamedTuple):
    """What a lemma gets for `Parameters`: call `model(params, x)`; `initial` is the start."""

    model: Any
    params: Any
    initial: Any


class Parameters(Space):
    """Parameters of a registered model near its start: each block at most `radius` away.

    `model` is a name of `headcount list`; the start is the paper's own (or `init`) with `seed`.
    """

    def __init__(
        self,
        model: str,
        T: Axis,
        d: Axis,
        width: Axis,
        *,
        radius: float = 1.0,
        init: str | None = None,
        seed: int = 0,
        **options: Any,
    ) -> None:
        self.model, self.init, self.seed, self.options = model, init, seed, options
        self.radius = check_positive("radius", radius)
        self.counts = dict(zip(("T", "d", "width"), check_axes((T, d, width)), strict=True))
        recipe_of(model)  # a typo is told here

    def start(self, sizes: Sizes) -> tuple[Any, Any]:
        """The model and its parameters at the start."""
        return _start(self, *(length(axis, sizes) for axis in self.counts.values()))

    @property
    def blocks(self) -> dict[str, tuple[Axis, ...]]:
        """The model's blocks; how long their axes are is the model's affair."""
        shapes = self._shapes(self._lowest)
        return {name: tuple(0 for _ in shape) for name, shape in shapes.items()}

    @property
    def sizes(self) -> dict[str, Size]:
        return {axis.name: axis for axis in self.counts.values() if isinstance(axis, Size)}

    @functools.cached_property
    def _lowest(self) -> dict[str, int]:
        return first_possible((self,), self.sizes)

    def refuses(self, sizes: Sizes) -> str | None:
        """The model's own rule, such as an even number of paired heads."""
        try:
            self.start(sizes)
        except BadArgument as error:
            return str(error)
        return None

    def outside(self, raw: Mapping[str, Any], sizes: Sizes) -> str | None:
        refused = self.refuses(sizes)
        if refused is not None:
            return refused
        for name, shape in self._shapes(sizes).items():
            if np.shape(raw[name]) != shape:
                return f"block {name} has shape {np.shape(raw[name])}, not {shape}"
        return None

    def _shapes(self, sizes: Sizes) -> dict[str, tuple[int, ...]]:
        _, initial = self.start(sizes)
        return {name: np.shape(leaf) for name, leaf in initial._asdict().items()}

    def draw(self, rng: np.random.Generator, count: int, sizes: Sizes) -> dict[str, Array]:
        drawn = {}
        for name, shape in self._shapes(sizes).items():
            x = rng.normal(size=(count, *shape))
            norms = np.sqrt(np.sum(x.reshape(count, -1) ** 2, axis=1))
            lengths = self.radius * np.where(rng.random(count) < 0.5, 1.0, rng.random(count))
            drawn[name] = x * (lengths / norms).reshape(-1, *[1] * len(shape))
        return drawn

    def inside(self, raw: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
        return {name: into_ball(x, self.radius, axes=x.ndim) for name, x in raw.items()}

    def point(self, raw: Mapping[str, Any], sizes: Sizes) -> Any:
        problem = self.outside(raw, sizes)
        if problem is not None:
            raise ValueError(problem)
        model, initial = self.start(sizes)
        moved = self.inside(raw, sizes)
        params = {name: jnp.asarray(leaf) + moved[name] for name, leaf in initial._asdict().items()}
        return NearStart(model, type(initial)(**params), initial)

    def python(self, name: str, raw: Mapping[str, Any]) -> list[str]:
        moves = ", ".join(f'"{k}": np.array({np.asarray(x).tolist()})' for k, x in raw.items())
        return [f'{name} = lemma.variables["{name}"].point({{{moves}}}, sizes)']

    def latex(self, name: str, raw: Mapping[str, Any]) -> list[str]:
        return [
            rf"\Delta {latex_name(k)}={latex_array(np.asarray(x))}\text{{ from the start}}"
            for k, x in raw.items()
        ]


@functools.lru_cache(maxsize=64)
def _start(space: Parameters, T: int, d: int, width: int) -> tuple[Any, Any]:
    recipe = recipe_of(space.model)
    init = space.init if space.init is not None else recipe.init

    def no_data(count: int) -> Any:
        raise BadArgument("init", init, "looks at samples", fix="choose one that does not")

    # The same start in every process and at every trace: drawn at once, and in float64.
    with float64(), jax.ensure_compile_time_eval():
        model = recipe.build(T, d, width, init=init, **space.options)
        model, initial = recipe.start(model, init, space.seed, no_data)
    return model, jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float64), initial)


class Constants(dict[str, float]):
    """Several forms of one constant, by name: each is a variant of the lemma.

    >>> Constants(printed=0.5, doubled=1.0)
    {'printed': 0.5, 'doubled': 1.0}
    """

    def __init__(self, **values: float) -> None:
        if not values:
            raise BadArgument("constants", values, "are none", fix="name one, such as printed=0.5")
        super().__init__(values)
