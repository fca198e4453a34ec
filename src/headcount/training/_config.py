"""A training run as plain values: what the command line, a TOML file and a figure's trial say.

A configuration builds the objects that run; its hash names the run. The problem (a model at its
initialisation, on data) is apart from how it is trained: a kernel needs the problem alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Self

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from ..core import BadArgument, Loss, losses, papers
from ..core._checks import check_kind
from ..core._manifest import Choice
from ..core._reading import parse_json
from ..core._registry import suggestion
from ._recipes import Recipe, inverse_root, recipe_of
from ._recorders import recorders
from ._runfile import load_run, no_run
from ._setup import KEEP

if TYPE_CHECKING:
    import xarray as xr

PROJECTED = ("projgd", "projsgd")
"""The optimisers that project."""


class Options(dict[str, Any]):
    """Options that stay as they are: a configuration has a hash, and its hash names a run."""

    def _refused(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a configuration does not change; make another one")

    __setitem__ = __delitem__ = update = setdefault = pop = popitem = clear = _refused
    __ior__ = _refused

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(json.dumps(self, sort_keys=True, default=str))

    def __reduce__(self) -> tuple[Any, ...]:
        return Options, (dict(self),)


def _frozen(value: Any) -> Any:
    """Options in options, and lists in them, stay as they are, too."""
    if isinstance(value, dict):
        return Options({name: _frozen(one) for name, one in value.items()})
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


_Options = Annotated[dict[str, Any], AfterValidator(_frozen)]


def _papers_own(meaning: str = "") -> Any:
    """A field whose default is in the model's recipe, taken when the configuration is made."""
    return Field(None, description=f"{meaning}default: the paper's own for this model")


def _first_model() -> str:
    """What is trained where no model is named: the first paper's."""
    return next(model for _, paper in papers.items() for model in paper.models)


class ProblemConfig(BaseModel):
    """One model at its initialisation, on one data model."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    model: str = Field(default_factory=lambda: _first_model())
    width: int = Field(64, description="m, H or d_m")
    model_options: _Options = Options()
    init: str = _papers_own()
    init_options: _Options = Options()
    data: str = _papers_own()
    data_options: _Options = Options()
    n: int = 1000
    n_val: int = 0
    seeds: tuple[int, ...] = (0,)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """A checked configuration; a wrong field is a `BadArgument` that names it."""
        check_kind("values", values, Mapping, fix='write {"width": 64}')
        for name in values:
            check_kind("config", name, str, fix="name every value")
        try:
            return cls(**{name: value for name, value in values.items() if value is not None})
        except ValidationError as error:
            first = error.errors()[0]
            reason = first.get("ctx", {}).get("error")
            if isinstance(reason, BadArgument):
                raise reason from None
            field = str(first["loc"][0])
            if first["type"] == "extra_forbidden":
                fix = suggestion(field, list(cls.model_fields))
                raise BadArgument(field, first["input"], "is no setting", fix=fix) from None
            wanted, example = _wanted(cls.model_fields[field].annotation)
            problem = f"must be {wanted}"
            fix = f"for example {field}={example or _example(cls.of({}), field)}"
            raise BadArgument(field, values[field], problem, fix=fix) from None

    @model_validator(mode="before")
    @classmethod
    def _plain_values(cls, values: Any) -> dict[str, Any]:
        """What strict types would not take for what it is: NumPy's numbers, and lists."""
        return {name: _plain(name, value) for name, value in dict(values).items()}

    @model_validator(mode="after")
    def _complete(self) -> Self:
        for name, value in self._defaults().items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        return self

    def _defaults(self) -> dict[str, Any]:
        return {"init": self.recipe.init, "data": self.recipe.data}

    @property
    def recipe(self) -> Recipe:
        """How the model is built, and what its paper does."""
        return recipe_of(self.model)

    def choices(self) -> list[tuple[str, Choice, Any]]:
        """The readings that apply: the paper, the choice, and what was given in its place."""
        given = self.model_dump(exclude_unset=True)
        given |= self.model_options | self.init_options | self.data_options
        named = ("model", "init", "data", "loss", "optimiser")
        about = papers.choices_about(*(str(getattr(self, k)) for k in named if hasattr(self, k)))
        return [(paper, choice, given.get(choice.option)) for paper, choice in about]

    @property
    def names_seeds(self) -> bool:
        """Whether seeds were given: then results have an axis of seeds, even for one."""
        return "seeds" in self.model_fields_set

    def naming_seeds(self) -> Self:
        """The same configuration, whose results have an axis of seeds."""
        return self.model_copy(update={"seeds": self.seeds})

    @property
    def fingerprint(self) -> str:
        """A short hash of every value: equal configurations have equal fingerprints."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


class TrainConfig(ProblemConfig):
    """A problem and how it is trained. Field names are the flags of `headcount train`."""

    optimiser: str = _papers_own()
    eta: float | None = Field(
        None, description="default: the paper's own for its optimiser, else 1/sqrt(steps)"
    )
    rho: tuple[float, float, float] | None = _papers_own("(rho_c, rho_u, rho_w), ")
    batch_size: int | None = None
    loss: str = _papers_own()
    steps: int = 400
    record: tuple[str, ...] = ()
    record_every: int | None = None
    keep: tuple[str, ...] = ()
    dtype: str = "float32"
    chunk: int | None = None

    @field_validator("loss", mode="before")
    @classmethod
    def _name_of_loss(cls, loss: Any) -> Any:
        if not isinstance(loss, Loss):
            return loss
        for name, known in losses.items():
            if known is loss:
                return name
        problem = "is not registered, and a configuration holds names"
        raise BadArgument("loss", loss.name, problem, fix="core.losses.register(name, loss) first")

    def _defaults(self) -> dict[str, Any]:
        recipe = self.recipe
        optimiser = self.optimiser or recipe.optimiser
        rule = {"optimiser": optimiser, "rho": recipe.rho if optimiser in PROJECTED else None}
        return {**super()._defaults(), **rule, "loss": recipe.loss}

    @property
    def step_size(self) -> float:
        """eta, or the default for this number of steps."""
        if self.eta is not None:
            return self.eta
        own = self.optimiser == self.recipe.optimiser
        return (self.recipe.step_size if own else inverse_root)(self.steps, self.n, self.loss)

    def resolved(self) -> dict[str, Any]:
        """The values with every default filled in, for records and tables."""
        filled = {"eta": self.step_size, "fingerprint": self.fingerprint}
        return {**self.model_dump(mode="json"), **filled}


_DEEPEST = 8
"""Tables within tables, or lists within lists."""


def _plain(name: str, value: Any, depth: int = 0) -> Any:
    """`value` in Python's own numbers, a list as a tuple; of bounded size."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, int) and value.bit_length() > (31 if depth else 63):
        shown = value if value.bit_length() < 1000 else None  # Python prints none that are larger
        raise BadArgument(name, shown, "is too large", fix="use a smaller number")
    if depth > _DEEPEST:
        raise BadArgument(name, None, "is nested too deeply", fix="give plain values")
    if isinstance(value, dict):
        return {key: _plain(name, item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | range):
        plain = (_plain(name, item, depth + 1) for item in value)
        return list(plain) if depth and isinstance(value, list) else tuple(plain)
    return value


def _wanted(annotation: Any) -> tuple[str, str]:
    """What a field takes, in words, and an example; none for words, which differ by field."""
    text = str(annotation)
    if "dict" in text:
        return "a table of options", "{d = 8}"
    if "float, float, float" in text:
        return "three numbers", "3,3,3"
    if "tuple[int" in text:
        return "whole numbers", "0,1,2"
    if "tuple[str" in text:
        return "a list of words", ""
    if "int" in text:
        return "a whole number", "64"
    return ("a number", "0.1") if "float" in text else ("a word", "")


def _example(default: ProblemConfig, field: str) -> str:
    """A word that is valid for this field: of a list the first that are known, else the default."""
    known: dict[str, Iterable[str]] = {"record": recorders, "keep": KEEP}
    return ",".join(list(known[field])[:2]) if field in known else str(getattr(default, field))


def config_of_run(path: str | Path) -> TrainConfig:
    """The configuration that a run file was trained with, read from its attributes."""
    return config_in(load_run(path), path)


def config_in(stored: xr.Dataset, path: str | Path) -> TrainConfig:
    """The configuration among the attributes of a run file."""
    try:
        values = dict(parse_json(str(stored.attrs["config"])))
    except (KeyError, TypeError, ValueError):
        raise no_run(path, "it holds no configuration") from None
    unknown = sorted(set(values) - set(TrainConfig.model_fields))
    if unknown:
        problem = f"was written by another version, with the fields {', '.join(unknown)}"
        raise BadArgument("run", str(path), problem, fix="train it again")
    return TrainConfig.of(values)
