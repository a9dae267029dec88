"""Byheart's networks as Hugging Face's: importing this module registers them with ``transformers``.

    import byheart.hf
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)

The folder is the one that Byheart wrote; nothing is converted, and nothing is run that lies in it. (Who has no Byheart
lets transformers run the code there: ``trust_remote_code=True``.) The classes themselves are in
:mod:`byheart.networks.transformer.pretrained`, and, for models with memories planted in them, in
:mod:`byheart.networks.planted.modeling_plant`.
"""

from pathlib import Path
from typing import Any

from byheart.errors import missing_package
from byheart.networks.folders import FLOAT, MODELING
from byheart.networks.transformer.modeling import modeling

try:
    from transformers import AutoConfig, AutoModelForCausalLM

    from byheart.networks.planted.modeling_plant import PlantedConfig
    from byheart.networks.transformer import pretrained
except ImportError as error:
    raise ImportError(missing_package("transformers", "byheart.hf", "hf")) from error

ByheartConfig = pretrained.ByheartConfig


class ByheartForCausalLM(pretrained.ByheartForCausalLM):
    """The model of ``pretrained`` under its own name, which config.json records; saved folders load without Byheart."""

    def save_pretrained(self, save_directory: Any, *given: Any, **others: Any) -> None:
        """Save the model as transformers does, with the code that the configuration names."""
        super().save_pretrained(save_directory, *given, **others)
        (Path(save_directory) / MODELING).write_text(modeling(), encoding="utf-8")


AutoConfig.register(FLOAT, ByheartConfig, exist_ok=True)
AutoModelForCausalLM.register(ByheartConfig, ByheartForCausalLM, exist_ok=True)
AutoConfig.register(PlantedConfig.model_type, PlantedConfig, exist_ok=True)  # models register with their bases
