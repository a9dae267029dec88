"""Byheart's networks as Hugging Face's: importing this module makes ``transformers`` know them.

    import byheart.hf
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)

The folder is the one that Byheart wrote; nothing is converted, and nothing is run that lies in it. The model runs the
one implementation there is, :class:`~byheart.networks.transformer.module.Transformer`, under the names that its tensors
have in the file, so that ``save_pretrained`` writes a folder that Byheart reads. Models with memories planted in them
(:mod:`byheart.planting`) are loaded in the same way, by Byheart's code and not by the copy in their folder.

Tensors keep the format in which they are stored: in another one, a network would forget. Generating needs no cache: the
network sees so few tokens that each step reads just these again.
"""

from typing import Any

from torch import Tensor, nn

from byheart.errors import BadInput, missing
from byheart.networks.folders import FLOAT
from byheart.networks.transformer.module import Transformer
from byheart.networks.transformer.spec import Spec

try:
    from transformers import (
        AutoConfig,
        AutoModelForCausalLM,
        GenerationMixin,
        PretrainedConfig,
        PreTrainedModel,
    )
    from transformers.modeling_outputs import CausalLMOutput

    from byheart.planting.modeling_plant import PlantedConfig
except ImportError as error:
    raise ImportError(missing("transformers", "byheart.hf", "hf")) from error


class ByheartConfig(PretrainedConfig):
    """What config.json holds: ``spec`` describes the network, ``about`` what it has memorized."""

    model_type = FLOAT

    def __init__(self, spec: dict[str, Any] | None = None, about: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(**{"tie_word_embeddings": False, **kwargs})
        self.spec, self.about = spec, about or {}


class ByheartForCausalLM(PreTrainedModel, GenerationMixin):
    """A float Transformer that recites; its weights come from a folder, by ``from_pretrained``."""

    network: Transformer
    config_class = ByheartConfig
    main_input_name = "input_ids"

    def __init__(self, config: ByheartConfig) -> None:
        super().__init__(config)
        if not config.spec:
            raise BadInput("the configuration has no spec; expected that of a folder that Byheart wrote")
        network = Transformer(Spec.from_json(config.spec))
        # The parts are ours, the whole is not: so tensors have the names here that they have in the file.
        for name, part in network.named_children():
            self.add_module(name, part)
        object.__setattr__(self, "network", network)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        logits_to_keep: int | Tensor = 0,
        return_dict: bool | None = None,
        **others: Any,
    ) -> CausalLMOutput | tuple[Tensor, ...]:
        """Logits [B, T, C] after each of ``input_ids`` [B, T]; with ``labels`` [B, T], the loss too.

        Where ``attention_mask`` [B, T] is 0 (padding on the left), tokens count as missing. ``logits_to_keep`` is how
        many of the last positions are wanted (0: all), or which.
        """
        for name in ("past_key_values", "inputs_embeds"):
            if others.get(name) is not None:
                raise BadInput(f"{name} was given; expected input_ids only, the network keeps nothing between calls")
        if input_ids is None:
            raise BadInput("no input_ids given; expected token ids [B, T]")
        last = logits_to_keep if isinstance(logits_to_keep, int) and logits_to_keep else None
        logits: Any = self.network(input_ids, last=last, mask=attention_mask)
        if isinstance(logits_to_keep, Tensor):
            logits = logits[:, logits_to_keep]
        loss: Any = None
        if labels is not None:
            if logits.shape[1] != labels.shape[1]:
                raise BadInput(f"labels are {list(labels.shape)} with logits_to_keep; expected one or the other")
            loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        output = CausalLMOutput(loss=loss, logits=logits)
        return output.to_tuple() if return_dict is False else output

    def prepare_inputs_for_generation(  # type: ignore[override]  # all are given by name
        self, input_ids: Tensor, *, attention_mask: Tensor | None = None, **_: Any
    ) -> dict[str, Any]:
        """The tokens that the network can see from the last one."""
        seen = slice(-self.network.sees, None)
        mask = None if attention_mask is None else attention_mask[:, seen]
        return {"input_ids": input_ids[:, seen], "attention_mask": mask, "logits_to_keep": 1}

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        """Transformers asks; see the top for why there is no cache."""
        return False

    def _init_weights(self, module: nn.Module) -> None:
        """Nothing is drawn: what a folder does not give stays 0."""


AutoConfig.register(FLOAT, ByheartConfig, exist_ok=True)
AutoModelForCausalLM.register(ByheartConfig, ByheartForCausalLM, exist_ok=True)
AutoConfig.register(PlantedConfig.model_type, PlantedConfig, exist_ok=True)  # models register with their bases
