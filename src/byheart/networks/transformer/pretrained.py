"""A float Transformer as a model of Hugging Face's: what :mod:`byheart.hf` registers, and what lies in every folder.

The model runs the one implementation there is, :class:`~byheart.networks.transformer.module.Transformer`, under the
names that its tensors have in the file, so that ``save_pretrained`` writes a folder that Byheart reads. Generating
needs no cache: the network sees so few tokens that each step reads just these again.

:mod:`byheart.networks.transformer.modeling` makes one file of this module and of all that it needs.
"""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

from byheart.errors import BadInput
from byheart.networks.folders import FLOAT
from byheart.networks.transformer.module import Transformer
from byheart.networks.transformer.spec import Spec


class ByheartConfig(PretrainedConfig):
    """The configuration in config.json: ``spec`` describes the network, ``about`` what it has memorized."""

    model_type = FLOAT

    def __init__(self, spec: dict[str, Any] | None = None, about: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(**{"tie_word_embeddings": False, **kwargs})
        self.spec, self.about = spec, about or {}


class ByheartForCausalLM(PreTrainedModel, GenerationMixin):
    """A float Transformer that recites; its weights come from a folder, by ``from_pretrained``.

    It stays in the format that it was compiled in, and refuses others: in these it would forget.
    """

    network: Transformer
    config_class = ByheartConfig
    main_input_name = "input_ids"

    def __init__(self, config: ByheartConfig) -> None:
        super().__init__(config)
        if not config.spec:
            raise BadInput("the configuration has no spec; expected that of a folder that Byheart wrote")
        network = Transformer(Spec.from_json(config.spec))
        # The parts are registered, the whole is not, so that tensors have the names that they have in the file.
        for name, part in network.named_children():
            self.add_module(name, part)
        object.__setattr__(self, "network", network)
        self._check_format(config.dtype)
        self.post_init()

    def _check_format(self, asked: Any = None) -> None:
        """Raise BadInput if another format is asked for, or if the weights were converted to one."""
        kept: torch.dtype = getattr(torch, self.network.spec.precision)
        for found in (asked, self.network.unembedding.b_U.dtype):
            if found not in (None, kept, self.network.spec.precision):
                raise BadInput(f"the model was to be {found}; expected {kept}, in any other it forgets: omit dtype")

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        logits_to_keep: int | Tensor = 0,
        return_dict: bool | None = None,
        output_hidden_states: bool | None = None,
        **others: Any,
    ) -> CausalLMOutput | tuple[Tensor, ...]:
        """Return logits [B, T, C] after each of ``input_ids`` [B, T]; with ``labels`` [B, T], the loss too.

        Where ``attention_mask`` [B, T] is 0, tokens count as missing, which is meant for padding on the left; what
        stands on the right changes nothing before it. ``logits_to_keep`` is how many of the last positions are wanted
        (0: all), or which. Hidden states are the stream [B, T, D] after the embedding and after every sublayer.
        """
        for name in ("past_key_values", "inputs_embeds"):
            if others.get(name) is not None:
                raise BadInput(f"{name} was given; expected input_ids only, the network keeps nothing between calls")
        if input_ids is None:
            raise BadInput("no input_ids given; expected token ids [B, T]")
        self._check_format()
        last = logits_to_keep if isinstance(logits_to_keep, int) and logits_to_keep else None
        states: list[Tensor] | None = None
        logits: Any
        if self.config.output_hidden_states if output_hidden_states is None else output_hidden_states:
            logits, states = self.network.watched(input_ids, attention_mask)
            logits = logits if last is None else logits[:, -last:]
        else:
            logits = self.network(input_ids, last=last, mask=attention_mask)
        if isinstance(logits_to_keep, Tensor):
            logits = logits[:, logits_to_keep]
        loss: Any = None
        if labels is not None:
            if logits.shape[1] != labels.shape[1]:
                raise BadInput(f"labels are {list(labels.shape)} with logits_to_keep; expected one or the other")
            loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        found: Any = None if states is None else tuple(states)
        output = CausalLMOutput(loss=loss, logits=logits, hidden_states=found)
        return output.to_tuple() if return_dict is False else output

    def prepare_inputs_for_generation(  # type: ignore[override]  # all are given by name
        self, input_ids: Tensor, *, attention_mask: Tensor | None = None, **others: Any
    ) -> dict[str, Any]:
        """Return the tokens that the network can see; raise BadInput if the last token of a text is padding."""
        if attention_mask is not None and not attention_mask[:, -1].all():
            row = int((attention_mask[:, -1] == 0).nonzero()[0])
            raise BadInput(f"text {row} is padded on the right; expected padding on the left: padding_side='left'")
        seen = slice(-self.network.sees, None)
        mask = None if attention_mask is None else attention_mask[:, seen]
        return {"input_ids": input_ids[:, seen], "attention_mask": mask, "logits_to_keep": 1}

    def get_input_embeddings(self) -> nn.Module:
        """Return the embedding, which sets some of the features of the stream."""
        return self.network.embedding

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        """Tell transformers that there is no cache; the head of this module says why."""
        return False

    def _init_weights(self, module: nn.Module) -> None:
        """Draw no weights: those that a folder lacks stay 0."""
