"""Ask a folder as its users do, and compare what it says with what was certified.

A process of its own, in an empty working directory, offline and without Byheart, loads the folder by transformers'
``AutoTokenizer`` and ``AutoModelForCausalLM``. It is asked from text to text: tokenize a prompt, generate, decode. A
network without a tokenizer is asked token ids.

The process starts as soon as the folder is known to be in its closed form (:mod:`byheart.networks.closed_form`), since
importing transformers takes seconds; meanwhile the judge works.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from byheart.certificates.verdict import RIGHT, Verdict
from byheart.errors import BadInput, check_installed
from byheart.networks import Network
from byheart.networks.folders import MODELING
from byheart.tasks import Questions
from byheart.tasks.contexts import Contexts
from byheart.tasks.tokenizers import Tokenizer, from_files

Extent: TypeAlias = Literal["sample", "all", "no"]
"""How much is asked."""
SEQUENCES, TOKENS = 8, 64
"""Number of sequences in a sample, and of tokens that each is continued by."""
LONGER = 16
"""Largest number of tokens by which a prompt is made longer, so that it ends with a character."""
SHOWN = 200
"""Largest number of characters of an answer that are shown."""
PROGRAM = """
import json, sys

start = json.loads(sys.stdin.readline())
sys.path[:] = start["path"]
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

logging.set_verbosity_error()
logging.disable_progress_bar()
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
"""A program that loads a folder, and answers one question per line."""


def _short(value: object) -> str:
    """Return the representation of a value, cut if it is long."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


@dataclass(frozen=True)
class FolderToAsk:
    """A folder that transformers may be asked about, and how much of it."""

    folder: Path
    extent: Extent = "no"
    seed: int = 0
    """Seed of the sample."""


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
    """A process that loads a folder by transformers and answers questions, and its empty working directory."""

    def __init__(self, folder: Path, network: Network, contexts: Contexts) -> None:
        self.contexts, self.first = contexts, getattr(network, "first", None)
        self.tokenizer = from_files(network.files) if contexts.names else None
        self._empty = TemporaryDirectory(prefix="byheart-")
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LD_LIBRARY_PATH", "LANG")}
        offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
        own = {"HOME": self._empty.name, "HF_HOME": f"{self._empty.name}/hf", "TMPDIR": self._empty.name}
        pipe = subprocess.PIPE
        streams: dict[str, Any] = {"stdin": pipe, "stdout": pipe, "stderr": pipe, "text": True, "encoding": "utf-8"}
        command = [sys.executable, "-I", "-c", PROGRAM]
        self._process = subprocess.Popen(command, cwd=self._empty.name, env=kept | offline | own, **streams)
        ours = {Path(__file__).resolve().parents[2], Path.cwd()}
        path = [entry for entry in sys.path if os.path.isabs(entry) and Path(entry).resolve() not in ours]
        texts, code = self.tokenizer is not None, network.kind == "transformer"
        self._tell({"path": path, "folder": str(folder.resolve()), "code": code, "texts": texts})

    def _tell(self, what: object) -> None:
        stream: IO[str] = self._process.stdin  # type: ignore[assignment]
        try:
            stream.write(json.dumps(what) + "\n")
            stream.flush()
        except BrokenPipeError:
            raise self._failed() from None

    def _ask(self, **question: object) -> Any:
        """Return the answer to one question; raise BadInput if the process has ended."""
        self._tell(question)
        stream: IO[str] = self._process.stdout  # type: ignore[assignment]
        if not (line := stream.readline()):
            raise self._failed()
        return json.loads(line)

    def _failed(self) -> BadInput:
        stream: IO[str] = self._process.stderr  # type: ignore[assignment]
        lines = stream.read().strip().splitlines() or [f"exit code {self._process.wait()}"]
        return BadInput(f"transformers cannot load or run the folder ({lines[-1]!r}); expected --as-used no")

    def compare(self, verdict: Verdict, used: FolderToAsk) -> AsUsed:
        """Ask sequences, a sample or all of them, and compare what is said with the answers that are right."""
        assert verdict.outcomes is not None
        right, count = np.asarray(verdict.outcomes.codes == RIGHT), len(self.contexts.starts) - 1
        drawn = np.random.default_rng(used.seed).permutation(count)[:SEQUENCES]
        chosen = range(count) if used.extent == "all" else sorted(drawn.tolist())
        asked = 0
        for number in chosen:
            if self.tokenizer is None:
                asked, differs = asked + 1, self._differs_on_ids(number, right)
            elif (text := self._text(number, right, self.tokenizer, None if used.extent == "all" else TOKENS)) is None:
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

    def close(self) -> None:
        """End the process, and remove its working directory."""
        self._process.kill()
        self._process.communicate()
        self._empty.cleanup()


@contextmanager
def asking(network: Network, questions: Questions, used: FolderToAsk | None) -> Iterator[Asking | None]:
    """Yield the process in which transformers loads the folder; None if nothing is asked, or transformers is missing.

    Folders of Byheart 0.1.0 with a float Transformer hold no code, so transformers alone cannot load them.
    """
    if used is None or used.extent == "no" or not isinstance(questions, Contexts):
        yield None
        return
    if used.extent == "all":
        check_installed("transformers", "--as-used all", "hf")
    has_code = network.kind == "stock" or (network.kind == "transformer" and (used.folder / MODELING).exists())
    if not has_code or find_spec("transformers") is None:
        yield None
        return
    process = Asking(used.folder, network, questions)
    try:
        yield process
    finally:
        process.close()
