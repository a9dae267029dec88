"""Ask a folder as its users do, and compare what it says with what was certified.

A process of its own, in an empty working directory, offline and without Byheart, loads the folder by transformers'
``AutoTokenizer`` and ``AutoModelForCausalLM``. It is asked from text to text: tokenize a prompt, generate, decode. A
network without a tokenizer is asked token ids.

Importing transformers takes seconds. So the process starts first of all, loads the folder as soon as it is known to be
in its closed form (:mod:`byheart.networks.closed_form`), and meanwhile the judge works.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from byheart.certificates.verdict import RIGHT, Verdict
from byheart.closed import IsolatedPython
from byheart.errors import BadInput, check_installed
from byheart.networks import Network
from byheart.networks.folders import FLOAT, MODELING, model_type
from byheart.tasks import Questions
from byheart.tasks.contexts import Contexts
from byheart.tasks.tokenizers import Tokenizer, from_files

Extent: TypeAlias = Literal["sample", "all", "no"]
"""How much is asked."""
STOCK = ("llama", "qwen2_moe")
"""Model types of transformers that Byheart compiles to."""
SEQUENCES, TOKENS = 8, 64
"""Number of sequences in a sample, and of tokens that each is continued by."""
LONGER = 16
"""Largest number of tokens by which a prompt is made longer, so that it ends with a character."""
SHOWN = 200
"""Largest number of characters of an answer that are shown."""
PROGRAM = """
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationMixin, PreTrainedModel
from transformers.utils import logging

logging.set_verbosity_error()
logging.disable_progress_bar()
start = json.loads(sys.stdin.readline())
options = {"trust_remote_code": True} if start["code"] else {}
model = AutoModelForCausalLM.from_pretrained(start["folder"], **options)
tokenizer = AutoTokenizer.from_pretrained(start["folder"], **options) if start["texts"] else None
for line in sys.stdin:
    asked = json.loads(line)
    with torch.inference_mode():
        if tokenizer is None:
            said = model(torch.tensor([asked["ids"]])).logits[0].argmax(-1).tolist()
        else:
            batch = tokenizer(asked["prompt"], return_tensors="pt")
            output = model.generate(**batch, max_new_tokens=asked["tokens"])
            said = tokenizer.decode(output[0], skip_special_tokens=True)
    print(json.dumps(said), flush=True)
"""
"""A program that imports what takes seconds, loads a folder, and then answers one question per line."""


def _short(value: object) -> str:
    """Return the representation of a value, cut if it is long."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


class FolderToAsk:
    """A folder that transformers may be asked about, and how much of it; used by ``with``, which starts the process.

    Byheart's networks without a ``model_type`` are none for transformers. Nor can it load float Transformers of Byheart
    0.1.0, since their folders hold no code.
    """

    def __init__(self, folder: Path, extent: Extent = "sample", seed: int = 0) -> None:
        self.folder, self.extent, self.seed = folder, extent, seed
        self._process: IsolatedPython | None = None

    def __enter__(self) -> Self:
        kind = model_type(self.folder)
        can_load = kind in STOCK or (kind == FLOAT and (self.folder / MODELING).exists())
        if self.extent == "all":
            check_installed("transformers", "--as-used all", "hf")
        if self.extent != "no" and can_load and find_spec("transformers") is not None:
            self._process = IsolatedPython(PROGRAM)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.close()

    def asking(self, network: Network, questions: Questions) -> "Asking | None":
        """Let transformers load the folder, while the judge works; None if it is not asked.

        The folder must be in its closed form by now.
        """
        if self._process is None or not isinstance(questions, Contexts):
            return None
        return Asking(self, self._process, network, questions)


@dataclass(frozen=True)
class AsUsed:
    """How many sequences transformers was asked, of how many, and the first thing that it said otherwise."""

    asked: int
    sequences: int
    differs: str | None = None

    def __str__(self) -> str:
        if self.differs is not None:
            return f"transformers says something else: {self.differs}"
        if not self.asked:
            return "transformers was asked nothing: no prompt is a text"
        return f"transformers, in a process of its own, says the same: {self.asked:,} of {self.sequences:,} asked"

    def as_json(self) -> dict[str, object]:
        """Return the object that ``--json`` prints."""
        return asdict(self)


class Asking:
    """A process that loads a folder by transformers and answers questions about it."""

    def __init__(self, used: FolderToAsk, process: IsolatedPython, network: Network, contexts: Contexts) -> None:
        self.used, self._process, self.contexts = used, process, contexts
        self.first = getattr(network, "first", None)
        self.tokenizer = from_files(network.files) if contexts.names else None
        texts, code = self.tokenizer is not None, network.kind == "transformer"
        with _clear_errors():
            process.tell({"folder": str(used.folder.resolve()), "code": code, "texts": texts})

    def _ask(self, **question: object) -> Any:
        with _clear_errors():
            return self._process.ask(question)

    def compare(self, verdict: Verdict) -> AsUsed:
        """Ask sequences, a sample or all of them, and compare what is said with the answers that are right."""
        assert verdict.outcomes is not None
        right, count = np.asarray(verdict.outcomes.codes == RIGHT), len(self.contexts.starts) - 1
        drawn = np.random.default_rng(self.used.seed).permutation(count)[:SEQUENCES]
        chosen = range(count) if self.used.extent == "all" else sorted(drawn.tolist())
        asked, most = 0, None if self.used.extent == "all" else TOKENS
        for number in chosen:
            if self.tokenizer is None:
                asked, differs = asked + 1, self._differs_on_ids(number, right)
            elif (text := self._text(number, right, self.tokenizer, most)) is None:
                continue
            else:
                asked, differs = asked + 1, self._differs_on_text(*text)
            if differs is not None:
                return AsUsed(asked, count, differs)
        return AsUsed(asked, count)

    def _differs_on_ids(self, number: int, right: NDArray[np.bool_]) -> str | None:
        """Ask for the token after each place of a sequence; return what differs from a right answer, if anything."""
        first, last = self.contexts.starts[number : number + 2]
        ids, before = self.contexts.tokens[first:last].tolist(), [] if self.first is None else [self.first]
        said = self._ask(ids=[*before, *ids])[len(before) :]
        for place, question in enumerate(self.contexts.questions_at(np.arange(first, last)).tolist()):
            if question >= 0 and right[question] and said[place] != (label := int(self.contexts.labels[question])):
                return f"{said[place]} after the tokens {_short(ids[: place + 1])}, and not {label}"
        return None

    def _differs_on_text(self, prompt: str, wanted: str, tokens: int, is_whole: bool) -> str | None:
        """Ask for what follows a prompt, and compare it with what is wanted, the prompt decoded with it."""
        said = self._ask(prompt=prompt, tokens=tokens)
        if not is_whole:  # its last character may be cut
            said, wanted = (text.rstrip("\N{REPLACEMENT CHARACTER}") for text in (said, wanted))
        return None if said == wanted else f"{_short(said)} for the prompt {_short(prompt)}, and not {_short(wanted)}"

    def _text(
        self, number: int, right: NDArray[np.bool_], tokenizer: Tokenizer, most: int | None
    ) -> tuple[str, str, int, bool] | None:
        """Return a prompt, it and its continuation, the number of tokens to generate, and True if the text ends then.

        A prompt that ends within a character is made longer. None if no prompt is a text, as in a file that is none.
        """
        ids, given, is_whole = self._continued(number, right, most)
        for length in range(given, min(given + LONGER, len(ids)) + 1):
            prompt = tokenizer.decode(ids[:length])
            try:
                text, same = prompt.decode(), tokenizer.encode(prompt).tolist() == ids[:length]
            except UnicodeDecodeError:
                continue
            if same and (tokens := len(ids) - length + is_whole):
                wanted = tokenizer.decode(ids).decode(errors="replace")
                return text, wanted, tokens, is_whole
        return None

    def _continued(self, number: int, right: NDArray[np.bool_], most: int | None) -> tuple[list[int], int, bool]:
        """Return a prompt with what follows by right answers, the prompt's length, and True if the text ends there.

        It stops where an answer is not right, or is not the next token of the sequence, because it was edited.
        """
        contexts = self.contexts
        first, last = contexts.starts[number : number + 2].tolist()
        given = int(contexts.prompts[number])
        ids = contexts.tokens[first : first + given].tolist()
        for place in range(first + given - 1, last):
            (question,) = contexts.questions_at([place]).tolist()
            if question < 0 or not right[question] or (most is not None and len(ids) - given >= most):
                return ids, given, False
            if (label := int(contexts.labels[question])) == contexts.end:
                return ids, given, True
            ids.append(label)
            if place + 1 < last and label != contexts.tokens[place + 1]:
                return ids, given, False
        return ids, given, False


@contextmanager
def _clear_errors() -> Iterator[None]:
    try:
        yield
    except EOFError as error:
        raise BadInput(f"transformers cannot load or run the folder ({str(error)!r}); expected --as-used no") from None
