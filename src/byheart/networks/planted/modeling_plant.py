"""A causal language model with memories planted in it: the model's own class, and a side memory on token ids.

Paraphrases are not covered: a memory is a list of token ids, and it is said where a text ends with exactly these.

This file is all that runs, and it needs torch and transformers only. Byheart itself uses it, and a copy of it lies in
every planted folder, for ``trust_remote_code=True``. It runs memories; ``byheart plant`` makes them.

A fact is a prompt p₁…p_k and a completion c₁…c_m. If the known end of a text is p·c₁…c_j (j < m), the next token is
c_{j+1}; the longest such context wins. There, and only there, one logit is written: it becomes the row's largest plus
1,024 (or a 64th of it, if that is more). All other rows are the base's, bit for bit: nothing is added to them, not even
0.

A prompt is found in four steps, all of them in integers, so that every device finds the same:

1. *Ends*: a bit for every token says whether some prompt ends with it.
2. *Hash*, for each length k that prompts have: h_i = (Σ_d a_{i,d}·(id_{t−d} + 1) + s_{i,k}) mod 2³¹ − 1. The sum stays
   below 2⁶³, as the sizes of a plan are checked to make it.
3. *Table*: the exclusive or of six cells within a band, which h₀, h₁, h₂ choose; values are packed into 32-bit words.
4. *Decide*. Whole keys: the value is the number of a fact, whose ids are in the store and are compared one by one.
   Fingerprints: the value is compared with bits of h₃ and h₄; the completion comes from a second table.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache, reduce, wraps
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, PreTrainedConfig
from transformers.cache_utils import Cache, DynamicLayer
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

TYPE = "byheart-plant"
"""The ``model_type`` of a planted model: under its base's own, transformers would load the bare base."""
PRIME = 2**31 - 1
PLACES = 6
"""Number of cells whose exclusive or is a value."""
WIDEST_BAND = 1024
MOST_BITS = 62
"""Largest number of bits of a fingerprint: two numbers below 2³¹."""
LOUDER = 1024.0
"""Difference between a memory's logit and all others: e^−1024 is 0 in float32."""
ROUNDED = 2.0**-6
"""Factor of the largest logit, if the product is more: bfloat16, which has 8 bits, rounds 2¹⁸ + 1,024 to 2¹⁸."""
AT_ONCE = 1 << 20
"""Number of products that are computed at once in a long text."""


@dataclass(frozen=True)
class MemoryPlan:
    """The sizes of a memory, as config.json has them."""

    mode: str
    """"whole" keys or "print"s."""
    vocab: int
    facts: int
    """Number of different prompts."""
    longest: int
    """Number of ids of the longest prompt."""
    lengths: int
    """Number of different lengths of prompts."""
    says: int
    """Number of ids of the longest completion."""
    bits: int
    """Bits of a value in the table: a fact's number, or a fingerprint."""
    cells: int
    band: int
    classes: int
    """Whole keys: number of pairs of lengths, of prompt and completion."""
    store: int
    """Whole keys: number of ids in the store."""
    answers: int
    """Fingerprints: number of cells of the completions' table."""
    answers_band: int
    seed: int
    draw: int
    """Number of the hash, of those drawn from the seed."""

    @classmethod
    def of(cls, value: object) -> "MemoryPlan":
        """Return the plan in a JSON value; ValueError if it makes no sense. Each number is bounded before its use."""
        names = [field.name for field in fields(cls)]
        if not isinstance(value, Mapping) or set(value) != set(names):
            raise ValueError(f"the plan of the memory is {_short(value)}; expected the keys {', '.join(names)}")
        if value["mode"] not in ("whole", "print"):
            raise ValueError(f"plan: mode is {_short(value['mode'])}; expected whole or print")
        whole = value["mode"] == "whole"
        bounds = {
            "vocab": (1, 1 << 24),
            "facts": (1, 1 << 30),
            "longest": (1, 1 << 16),
            "lengths": (1, value["longest"]),
            "says": (1, 1 << 20),
            "bits": (1, 31 if whole else MOST_BITS),
            "cells": (1, PRIME),
            "band": (1, WIDEST_BAND),
            "classes": (1, value["facts"]) if whole else (0, 0),
            "store": (2, PRIME) if whole else (0, 0),
            "answers": (0, 0) if whole else (1, PRIME),
            "answers_band": (0, 0) if whole else (1, WIDEST_BAND),
            "seed": (0, (1 << 63) - 1),
            "draw": (0, 1 << 20),
        }
        for name, (low, high) in bounds.items():
            number = value[name]
            if type(number) is not int or type(high) is not int or not low <= number <= high:
                raise ValueError(f"plan: {name} is {_short(number)}; expected a whole number from {low} to {high}")
        plan = cls(**value)
        for name, band, cells in (("band", plan.band, plan.cells), ("answers_band", plan.answers_band, plan.answers)):
            if band & (band - 1) or band > cells:
                raise ValueError(f"plan: {name} is {band}; expected a power of 2, and at most {cells} cells")
        if whole and plan.facts > 1 << plan.bits:
            raise ValueError(f"plan: {plan.facts} facts with numbers of {plan.bits} bits; expected room for all")
        if plan.longest * (plan.vocab + 1) >= 1 << 31:
            sizes = f"{plan.longest} ids of {plan.vocab} kinds"
            raise ValueError(f"plan: prompts have {sizes}; expected a product below 2³¹, which hashing takes")
        return plan

    def as_json(self) -> dict[str, Any]:
        """Return the plan as config.json holds it."""
        return asdict(self)

    @property
    def width(self) -> int:
        """Bits of a token id."""
        return max(1, (self.vocab - 1).bit_length())

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the memory's tensors, all of 32-bit integers."""
        hashes = 3 if self.mode == "whole" else 5
        shared: dict[str, tuple[int, ...]] = {
            "ends": (words_for(self.vocab, 1),),
            "lengths": (self.lengths,),
            "factors": (hashes, self.longest),
            "shifts": (hashes, self.lengths),
            "table": (words_for(self.cells, self.bits),),
        }
        if self.mode == "whole":
            return shared | {"classes": (4, self.classes), "store": (words_for(self.store, self.width),)}
        return shared | {"steps": (3,), "answers": (words_for(self.answers, self.width + 1),)}


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def words_for(count: int, width: int) -> int:
    """Return the number of 32-bit words for ``count`` values, and one more, because two are read at a time."""
    return (count * width + 31) // 32 + 1


def read(words: Tensor, number: Tensor, width: int) -> Tensor:
    """Return the values with these numbers, ``width`` bits each, from words that hold them without gaps.

    >>> read(torch.tensor([0b11_10_01_00, 0], dtype=torch.int32), torch.arange(4), 2).tolist()
    [0, 1, 2, 3]
    """
    if width > 31:
        low = _bits(words, number * width, 31)
        return low | (_bits(words, number * width + 31, width - 31) << 31)
    return _bits(words, number * width, width)


def _bits(words: Tensor, at: Tensor, width: int) -> Tensor:
    """Return at most 31 bits, from bit ``at`` on."""
    word, shift = at >> 5, at & 31
    low, high = (words[place].long() & 0xFFFFFFFF for place in (word, word + 1))
    return ((low >> shift) | (high << (32 - shift))) & ((1 << width) - 1)


def places(h: Tensor, cells: int, band: int) -> Tensor:
    """Return the six cells [6, …] of keys with the hashes h [3, …], all within ``band`` of the first possible one."""
    start = h[0] * (cells - band + 1) >> 31
    offsets = [h[1:3] >> 10 * i for i in range(PLACES // 2)]
    return start + (torch.cat(offsets) & (band - 1))


def found(words: Tensor, h: Tensor, cells: int, band: int, bits: int) -> Tensor:
    """Return the values that a table holds for keys with the hashes h [3, …]: the exclusive or of six cells."""
    return reduce(torch.bitwise_xor, read(words, places(h, cells, band), bits).unbind())


def hashes(windows: Tensor, factors: Tensor, shifts: Tensor, lengths: Tensor) -> Tensor:
    """Return the hashes [H, n, K] of windows [n, L] for each of K lengths; ids run backwards, −1 for none."""
    sums = (factors.long()[:, None] * (windows + 1)).cumsum(-1)
    return (sums[..., lengths.long() - 1] + shifts.long()[:, None]) % PRIME


def prints(h: Tensor, bits: int) -> Tensor:
    """Return the fingerprints of keys with hashes h [5, …]: bits of the last two."""
    return (h[3] | (h[4] << 31)) & ((1 << bits) - 1)


class Memory(nn.Module):
    """A memory: ids in, a token or nothing out. Its buffers are integers, which casts leave alone."""

    ends: Tensor
    lengths: Tensor
    factors: Tensor
    shifts: Tensor
    table: Tensor

    def __init__(self, plan: MemoryPlan) -> None:
        super().__init__()
        self.plan = plan
        for name, shape in plan.shapes.items():
            self.register_buffer(name, torch.zeros(shape, dtype=torch.int32))

    @staticmethod
    def of(plan: MemoryPlan) -> "Memory":
        """Return an empty memory of the plan's mode."""
        return WholeKeys(plan) if plan.mode == "whole" else Fingerprints(plan)

    def check(self) -> None:
        """Raise ValueError if a number in the tensors points outside the memory."""
        lengths, plan = self.lengths.long(), self.plan
        rising = bool((lengths[1:] > lengths[:-1]).all()) and int(lengths[0]) >= 1
        if not rising or int(lengths[-1]) != plan.longest:
            raise ValueError(f"the memory's lengths are damaged; expected different ones from 1 to {plan.longest}")
        for name in ("factors", "shifts", *(["steps"] if plan.mode == "print" else [])):
            numbers = getattr(self, name)
            if bool((numbers < 0).any()) or bool((numbers >= PRIME).any()):
                raise ValueError(f"the memory's {name} are damaged; expected numbers from 0 to 2³¹ − 2")

    @torch.no_grad()
    def forward(self, ids: Tensor, first: int = 0) -> Tensor:
        """Return the token said after each position from ``first`` on, −1 for none: [B, T − first] from ids [B, T].

        An id of −1 is unknown and equals nothing. A completion that began before ``first`` goes on.
        """
        length = ids.shape[1]
        best = torch.full((ids.shape[0], length - first), -1, dtype=torch.int64, device=ids.device)
        rows, ends = self._ends(ids, max(0, first - self.plan.says + 1))
        if not len(rows):
            return best
        rows, ends, known, facts = self._prompts(ids, rows, ends)
        for said in range(self.plan.says):
            if not len(rows):
                break
            token, last = self.completion(facts, said)
            asked = (ends >= first) & (token < self.plan.vocab)
            place = (rows * (length - first) + ends - first)[asked]
            best.view(-1).scatter_reduce_(0, place, ((known + said) << 32 | token)[asked], "amax")
            onward = ~last & (ends + 1 < length) & (token < self.plan.vocab)
            onward &= ids[rows, (ends + 1).clamp(max=length - 1)] == token
            rows, ends, known, facts = rows[onward], ends[onward] + 1, known[onward], facts[onward]
        return torch.where(best < 0, best, best & 0xFFFFFFFF)

    def _ends(self, ids: Tensor, first: int) -> tuple[Tensor, Tensor]:
        """Return the places, ``first`` or later, with a token that some prompt ends with."""
        tail = ids[:, first:]
        inside = (tail >= 0) & (tail < self.plan.vocab)
        rows, ends = (inside & (read(self.ends, tail.where(inside, 0), 1) == 1)).nonzero(as_tuple=True)
        return rows, ends + first

    def _prompts(self, ids: Tensor, rows: Tensor, ends: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the prompts that end at these places: row, end, length and the key of the completion."""
        each = max(1, AT_ONCE // self.plan.longest)
        parts = [self._look(ids, *part) for part in zip(rows.split(each), ends.split(each), strict=True)]
        return tuple(torch.cat(column) for column in zip(*parts, strict=True))  # type: ignore[return-value]

    def _look(self, ids: Tensor, rows: Tensor, ends: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the prompts among the windows that end at these places."""
        places = ends[:, None] - torch.arange(self.plan.longest, device=ids.device)
        windows = ids[rows[:, None], places.clamp(min=0)].where(places >= 0, -1)
        unknown = (windows < 0) | (windows >= self.plan.vocab)
        reach = torch.where(unknown.any(1), unknown.int().argmax(1), self.plan.longest)
        window, length = (reach[:, None] >= self.lengths.long()).nonzero(as_tuple=True)
        h = hashes(windows, self.factors, self.shifts, self.lengths)[:, window, length]
        facts, is_one = self.match(windows, window, self.lengths.long()[length], h)
        window, length = window[is_one], length[is_one]
        return rows[window], ends[window], self.lengths.long()[length], facts

    def match(self, windows: Tensor, window: Tensor, length: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys of completions, and a mask that is True if the last ``length`` ids of a window are a prompt."""
        raise NotImplementedError

    def completion(self, facts: Tensor, said: int) -> tuple[Tensor, Tensor]:
        """Return the next token after ``said`` tokens of a completion, and True if it is the last."""
        raise NotImplementedError


class WholeKeys(Memory):
    """A memory that keeps and compares every fact's ids: it fires on planted contexts only, whatever the hash does."""

    classes: Tensor
    store: Tensor

    def check(self) -> None:
        """Raise ValueError unless the classes fill numbers and store without gaps, in their order."""
        super().check()
        prompt, said, first, start = self.classes.long()
        last = torch.cat([first[1:], first.new_tensor([self.plan.facts])])
        stop = start + (last - first) * (prompt + said)
        rises = bool((last > first).all()) and bool((prompt >= 1).all()) and bool((said >= 1).all())
        joined = torch.equal(start[1:], stop[:-1]) and int(stop[-1]) == self.plan.store
        if not rises or not joined or int(first[0]) or int(start[0]) or int(said.max()) > self.plan.says:
            raise ValueError("the memory's classes are damaged; expected facts that fill the store one by one")

    def fact(self, number: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return where the facts with these numbers begin in the store, and how many ids prompt and completion have."""
        prompt, said, first, start = self.classes.long()
        which = torch.searchsorted(first, number, right=True) - 1
        prompt, said = prompt[which], said[which]
        return start[which] + (number - first[which]) * (prompt + said), prompt, said

    def match(self, windows: Tensor, window: Tensor, length: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Compare windows with all ids of the one fact that the table names."""
        number = found(self.table, h, self.plan.cells, self.plan.band, self.plan.bits)
        start, prompt, said = self.fact(number.clamp(max=self.plan.facts - 1))
        is_one = (number < self.plan.facts) & (prompt == length)
        at = is_one.nonzero()[:, 0]
        start, prompt, said = start[at], prompt[at], said[at]
        back = torch.arange(self.plan.longest, device=windows.device)
        stored = read(self.store, (start + prompt)[:, None] - 1 - back.minimum(prompt[:, None] - 1), self.plan.width)
        equal = ((stored == windows[window[at]]) | (back >= prompt[:, None])).all(1)
        is_one[at] = equal
        return torch.stack([start + prompt, said], 1)[equal], is_one

    def completion(self, facts: Tensor, said: int) -> tuple[Tensor, Tensor]:
        """Read on where the prompt ends in the store."""
        at, length = facts[:, 0], facts[:, 1]
        return read(self.store, at + said, self.plan.width), length == said + 1


class Fingerprints(Memory):
    """A memory that keeps some bits of every prompt: others fire with probability 2^−bits if the hash acts randomly."""

    steps: Tensor
    answers: Tensor

    def match(self, windows: Tensor, window: Tensor, length: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Compare windows with the fingerprint that the table holds."""
        plan = self.plan
        is_one = found(self.table, h, plan.cells, plan.band, plan.bits) == prints(h, plan.bits)
        return h[:3, is_one].T, is_one

    def completion(self, facts: Tensor, said: int) -> tuple[Tensor, Tensor]:
        """Read the second table, by the prompt's hashes and the number of tokens said."""
        plan = self.plan
        value = found(self.answers, moved(facts.T, self.steps, said), plan.answers, plan.answers_band, plan.width + 1)
        return value & ((1 << plan.width) - 1), (value >> plan.width).bool()


def moved(h: Tensor, steps: Tensor, said: Tensor | int) -> Tensor:
    """Return the hashes [3, …] of a prompt after ``said`` tokens of its completion."""
    return (h + steps.long()[:, None] * (said + 1)) % PRIME


class Ids(DynamicLayer):
    """The ids that were read, as one more layer of a cache: reordered, cropped and repeated like the other layers."""

    def keep(self, ids: Tensor, like: object) -> None:
        """Set the ids. Masks look for the first layer that slides, or does not; that must not be this layer."""
        self.keys = self.values = ids[:, None, :, None]
        self.dtype, self.device, self.is_initialized = ids.dtype, ids.device, True
        self.is_sliding = getattr(like, "is_sliding", False)


def ids_before(past: object, batch: int, seen: int, device: torch.device) -> Tensor:
    """Return the ids [B, seen] that a cache has read; −1 if other code has filled it."""
    layers = past.layers if isinstance(past, Cache) else []
    for layer in layers:
        if isinstance(layer, Ids) and layer.keys is not None and layer.keys.shape[::2] == (batch, seen):
            return layer.keys[:, 0, :, 0].to(device)
    return torch.full((batch, seen), -1, dtype=torch.int64, device=device)


def padding(mask: object, seen: int, length: int) -> Tensor | None:
    """Return which of the last ``length`` tokens are padding: in a mask of four axes, those that see no token."""
    if isinstance(mask, Mapping):
        mask = mask.get("full_attention", next(iter(mask.values()), None))
    if not isinstance(mask, Tensor):
        return None
    if mask.ndim == 2:
        return mask[:, -length:] == 0
    own = torch.arange(length, device=mask.device)
    column = own + (seen if mask.shape[-1] >= seen + length else mask.shape[-1] - length)
    sees = mask[:, 0, own, column]
    return ~sees if sees.dtype == torch.bool else sees != 0


class Planted:
    """The part of a planted model that its base lacks; the base's class comes after this one."""

    plant: Memory
    config: Any
    loss_function: Any

    def __init__(self, config: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(config, *args, **kwargs)  # type: ignore[call-arg]
        plan = MemoryPlan.of(getattr(config, "plan", None))
        if plan.vocab > config.get_text_config().vocab_size:
            raise ValueError(f"plan: vocab is {plan.vocab}; expected at most the model's, {config.vocab_size}")
        self.plant = Memory.of(plan)

    @classmethod
    def from_pretrained(cls, *args: Any, output_loading_info: bool = False, **kwargs: Any) -> Any:
        """Load weights as the base does, but raise an error if a memory is missing or damaged."""
        model, info = super().from_pretrained(*args, output_loading_info=True, **kwargs)  # type: ignore[misc]
        lacking = [*info["missing_keys"], *(name for name, *_ in info.get("mismatched_keys", ()))]
        if lost := sorted(name for name in lacking if name.startswith("plant.")):
            raise ValueError(f"the tensor {lost[0]} is missing, or of another shape; expected the whole memory")
        model.plant.check()
        return (model, info) if output_loading_info else model

    def run_planted(self, run: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        """Run the base, then say what is planted where the texts end now."""
        past, new = arguments.get("past_key_values"), arguments.get("input_ids")
        seen = int(past.get_seq_length()) if isinstance(past, Cache) else 0
        as_dict = arguments.pop("return_dict", None)
        mask, labels = arguments.get("attention_mask"), arguments.get("labels")
        output = run(self, **arguments, return_dict=True)
        if new is None:
            shape = arguments["inputs_embeds"].shape[:2]
            new = torch.full(shape, -1, dtype=torch.int64, device=output.logits.device)
        ids = torch.cat([ids_before(past, new.shape[0], seen, new.device), _known(new, mask, seen)], 1)
        said = self.plant(ids, seen)
        if self._say(output, said, arguments.get("logits_to_keep", 0)) and labels is not None:
            count = {name: arguments[name] for name in ("num_items_in_batch",) if name in arguments}
            output.loss = self.loss_function(output.logits, labels, vocab_size=output.logits.shape[-1], **count)
        kept = getattr(output, "past_key_values", None)
        if isinstance(kept, Cache):
            _layer(kept).keep(ids, kept.layers[0])
        as_dict = self.config.return_dict if as_dict is None else as_dict
        return output if as_dict else output.to_tuple()

    def _say(self, output: Any, said: Tensor, keep: int | Tensor) -> bool:
        """Write the logits of the tokens that are said, and return True if there are any."""
        said = said[:, keep] if isinstance(keep, Tensor) else said[:, -keep:] if keep else said
        rows, places = (said >= 0).nonzero(as_tuple=True)
        if not len(rows):
            return False
        logits = output.logits.clone() if output.logits.requires_grad else output.logits
        tokens = said[rows, places].to(logits.device)
        rows, places = rows.to(logits.device), places.to(logits.device)
        top = logits[rows, places].amax(-1)
        logits[rows, places, tokens] = top + (top.abs() * ROUNDED).clamp(min=LOUDER)
        output.logits = logits
        return True


def _known(new: Tensor, mask: object, seen: int) -> Tensor:
    hidden = padding(mask, seen, new.shape[1])
    return new if hidden is None else new.masked_fill(hidden.to(new.device), -1)


def _layer(kept: Cache) -> Ids:
    """Return the layer of ids, which is put behind the base's layers once these exist."""
    for layer in kept.layers:
        if isinstance(layer, Ids):
            return layer
    new = Ids()
    kept.layers.append(new)
    return new


def _forward(base: type) -> Callable[..., Any]:
    """Return ``forward`` with the base's signature, which ``generate`` inspects."""
    signature = inspect.signature(base.forward)  # type: ignore[attr-defined]
    rest = next((name for name, own in signature.parameters.items() if own.kind == own.VAR_KEYWORD), None)

    @wraps(base.forward)  # type: ignore[attr-defined]
    def forward(self: Planted, *args: Any, **kwargs: Any) -> Any:
        as_dict = {name: kwargs.pop(name) for name in ("return_dict",) if name in kwargs}
        arguments = dict(signature.bind(self, *args, **kwargs).arguments)
        arguments |= arguments.pop(rest, {}) if rest else {}
        del arguments["self"]
        return self.run_planted(base.forward, arguments | as_dict)  # type: ignore[attr-defined]

    forward.__signature__ = signature  # type: ignore[attr-defined]
    return forward


@cache
def planted_classes(into: str) -> tuple[type, type]:
    """Return the configuration and model classes for a base that transformers calls ``into``, made at the first call.

    All have the names in ``auto_map``, for which transformers looks.
    """
    try:
        config_base = CONFIG_MAPPING[into]
        model_base: Any = MODEL_FOR_CAUSAL_LM_MAPPING[config_base]
    except KeyError:
        raise ValueError(
            f"{into!r} is no causal language model that transformers knows; expected gpt2, llama, …"
        ) from None
    here = {"__module__": __name__}
    config = type("PlantedConfig", (config_base,), {**here, "model_type": TYPE, "_auto_class": "AutoConfig"})
    own = {"forward": _forward(model_base), "config_class": config, "_auto_class": "AutoModelForCausalLM"}
    model = type("PlantedForCausalLM", (Planted, model_base), {**here, **own})
    AutoModelForCausalLM.register(config, model, exist_ok=True)
    return config, model


class PlantedConfig(PreTrainedConfig):
    """Stands for the configurations of all planted models; an instance is of the class that its base needs."""

    model_type = TYPE

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any) -> Any:
        """Return a configuration of the base's class, with the plan of the memory."""
        into = config_dict.get("planted_into")
        if not isinstance(into, str):
            raise ValueError(f"planted_into is {_short(into)}; expected the base's model_type")
        return planted_classes(into)[0].from_dict(config_dict, **kwargs)  # type: ignore[attr-defined]


class PlantedForCausalLM:
    """Stands for all planted models; an instance is of the base's class, with its memory."""

    config_class = PlantedConfig

    @classmethod
    def from_pretrained(cls, folder: Any, *args: Any, config: Any = None, **kwargs: Any) -> Any:
        """Load the planted model of a folder."""
        config = PlantedConfig.from_pretrained(folder) if config is None else config
        return planted_classes(config.planted_into)[1].from_pretrained(folder, *args, config=config, **kwargs)  # type: ignore[attr-defined]

    @classmethod
    def register_for_auto_class(cls, auto_class: str = "AutoModelForCausalLM") -> None:
        """Do nothing: the classes that are made register themselves, but transformers calls this."""
