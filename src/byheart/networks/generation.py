"""How others are to generate: ``generation_config.json``, which transformers reads beside config.json."""

import json
from pathlib import Path

GENERATION = "generation_config.json"


def write_generation(folder: Path, *, first: int | None, end: int | None, unknown: int | None = None) -> None:
    """The most likely token each time, up to ``end``, which is also what shorter texts of a batch are padded with.

    A network that refuses ends with ``unknown`` too.
    """
    ends = end if unknown is None else [end, unknown]
    given = {"bos_token_id": first, "eos_token_id": ends, "pad_token_id": end, "do_sample": False}
    (folder / GENERATION).write_text(json.dumps(given, indent=2) + "\n", encoding="utf-8")
