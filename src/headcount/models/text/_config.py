"""What a checkpoint's config.json says of its encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
)

from ...core import BadArgument
from ...core._reading import read_json

CONFIG_FILE = "config.json"
MOST_BYTES = 1 << 20
"""Of a config.json; they have one or two kB."""


class CheckpointConfig(BaseModel):
    """The sizes of a BERT or RoBERTa encoder, by the names that its config.json uses.

    Other entries of the file are not looked at; a value that our encoder does not compute is
    refused, such as relative positions or another activation than the exact GELU.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, allow_inf_nan=False)

    model_type: Literal["bert", "roberta"]
    vocab_size: PositiveInt
    hidden_size: PositiveInt
    num_hidden_layers: PositiveInt
    num_attention_heads: PositiveInt
    intermediate_size: PositiveInt
    max_position_embeddings: PositiveInt
    type_vocab_size: PositiveInt
    layer_norm_eps: PositiveFloat
    hidden_act: Literal["gelu"] = "gelu"
    position_embedding_type: Literal["absolute"] = "absolute"
    pad_token_id: NonNegativeInt = 0

    @property
    def first_position(self) -> int:
        """The row of the first token in the table of positions: RoBERTa counts from padding + 1."""
        return self.pad_token_id + 1 if self.model_type == "roberta" else 0

    @property
    def longest(self) -> int:
        """Tokens of the longest sentence that has positions, special tokens among them."""
        return self.max_position_embeddings - self.first_position


def read_config(folder: str | Path) -> CheckpointConfig:
    """The checked config.json of a checkpoint's folder."""
    path = Path(folder) / CONFIG_FILE

    def unusable(problem: str, fix: str) -> BadArgument:
        return BadArgument("checkpoint", path.name, f"{path} {problem}", fix=fix)

    if not path.is_file():
        raise unusable("is missing", f"name a folder with {CONFIG_FILE} and model.safetensors")
    again = "fetch the checkpoint again"
    found = read_json(path, MOST_BYTES, argument="checkpoint", fix=again)
    try:
        config = CheckpointConfig.model_validate(found)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise unusable(
            f"is not usable: {where}: {first['msg']}",
            "use a BERT or RoBERTa encoder with absolute positions",
        ) from error
    if config.hidden_size % config.num_attention_heads:
        raise unusable(
            f"is wrong: hidden_size {config.hidden_size} is not a multiple of num_attention_heads "
            f"{config.num_attention_heads}",
            again,
        )
    if config.longest < 1:
        raise unusable("has no position for a token", again)
    return config
