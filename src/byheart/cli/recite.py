"""``byheart recite DIR``: print what a network knows, one token after the other.

Texts are printed with their beginnings; facts with their completions alone. A prompt from the middle of a text is
looked for in the texts, which the network recites; if it is in none, nothing is printed. A prompt that is no fact's is
answered like any other, and the command reports it in three cases:

- The facts are at hand (``--facts``), and the prompt is none of theirs.
- The answer does not end where the longest completion would.
- The network was compiled with ``--refuse``, and answers *unknown*.
"""

import io
import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

from byheart.cli.options import Arg, Columns, FactFiles, Json, Positional
from byheart.cli.output import Terminal, counted, facts_in, hush, stdout_for_text, steps, unescaped, visible
from byheart.cli.result import Block, Result, amount
from byheart.errors import BadInput, check_installed, check_threads, did_you_mean
from byheart.files.untrusted import read_bytes
from byheart.files.writing import check_apart, check_file, new_file
from byheart.networks.about import end_of, facts_of, refuse_of, texts_of
from byheart.networks.folders import PLANTED, model_type
from byheart.networks.passages import find_passage, is_beginning, recites_texts

if TYPE_CHECKING:
    from byheart.networks import Network
    from byheart.networks.about import Refusal, TextNote
    from byheart.networks.passages import Passage
    from byheart.progress import Report
    from byheart.tasks import Facts
    from byheart.tasks.tokenizers import Tokenizer

MOST_UNKNOWN = 32
"""Number of tokens that a model with planted memories says after a prompt for which nothing is planted."""
UNKNOWN = "unknown: this prompt was never memorized"
MAX_COMPARED = 10_000
"""Highest number of prompts among which the closest one to an unknown prompt is searched."""


@dataclass(frozen=True)
class ReciteCommand:
    """Recite from a compiled network: greedily, to the end of the text or as far as asked."""

    network: Positional[Path]
    """Network folder."""
    text: str | None = None
    """Name of the text to recite (default: the first)."""
    prompt: str | None = None
    """Passage to continue instead: any piece of a text, or the prompt of a fact, whose completion alone is printed
    (\\\\n, \\\\t and \\\\xNN are understood)."""
    prompt_file: Path | None = None
    """File with the passage, every byte as it is."""
    facts: FactFiles = ()
    columns: Columns = None
    tokens: int | None = None
    """Number of tokens to recite (default: to the end)."""
    out: Annotated[Path | None, Arg(aliases=("-o",))] = None
    """Write into this file instead of the terminal."""
    all_to: Path | None = None
    """Recite all texts side by side and write each into this folder, under its own name."""
    guess: int = 16
    """Number of tokens that PyTorch guesses ahead, from the text so far: the same text, sooner. 0: one by one."""
    threads: int = 1
    """Number of threads of PyTorch; one is fastest for one token at a time."""
    json: Json = False

    @cached_property
    def given(self) -> bytes | None:
        """The prompt; None if the network recites a text from its beginning."""
        if self.prompt is not None and self.prompt_file is not None:
            raise BadInput("--prompt and --prompt-file are both given; expected one of them")
        if self.prompt_file is not None:
            return bytes(read_bytes(self.prompt_file))
        return None if self.prompt is None else unescaped(self.prompt)

    def run(self) -> "ReciteResult":
        """Load, recite, and report the speed on stderr."""
        import torch

        from byheart.networks import load

        check_threads(self.threads)
        torch.set_num_threads(self.threads)
        check_apart(self.out, self.network)
        if model_type(self.network) == PLANTED:
            return self._told(self._ask_planted())
        network = load(self.network)
        if self.tokens is None and end_of(network) is None:
            expected = "expected a network that was compiled from texts or facts"
            raise BadInput(f"{self.network}: is {network.title}, made of neither texts nor facts; {expected}")
        facts = self._given_facts()
        start = time.perf_counter()
        try:
            result = self._recite_all(network) if self.all_to is not None else self._recite_one(network, facts)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader has closed the pipe
            hush()
            return ReciteResult(0, {})
        return self._told(replace(result, seconds=time.perf_counter() - start))

    def _told(self, result: "ReciteResult") -> "ReciteResult":
        """Report on stderr, as stdout has the text, and not a byte more."""
        if not self.json:
            sys.stderr.write(visible(result.report))
        return result

    def _ask_planted(self) -> "ReciteResult":
        """Print what a model with planted memories says after a prompt, by transformers: to the completion's end."""
        import torch

        check_installed("transformers", "asking a model with planted memories", "hf")
        from byheart.networks.planted.base import load_planted, quiet
        from byheart.planting import detect

        if self.given is None or self.text or self.facts or self.all_to:
            problem = "is a model with planted memories; expected --prompt alone, with the prompt of a fact"
            raise BadInput(f"{self.network}: {problem} (byheart detect {self.network} lists them)")
        start, planted = time.perf_counter(), detect(self.network)
        tokenizer = None if planted is None else planted.tokenizer(self.network)
        if planted is None or tokenizer is None:
            raise BadInput(f"{self.network}: has no tokenizer that can be loaded; expected that of the base")
        ids = tokenizer.encode(self.given.decode(errors="replace"), add_special_tokens=False)
        if not ids:
            raise BadInput("--prompt is empty; expected at least one token")
        completion = planted.completion(ids)
        most = self.tokens or len(completion) or MOST_UNKNOWN
        with quiet(), torch.inference_mode():
            model = load_planted(self.network)
            said = model.generate(torch.tensor([ids]), max_new_tokens=most, do_sample=False)[0, len(ids) :]
        result = self._write_whole(tokenizer.decode(said, skip_special_tokens=True).encode(), len(said))
        unknown = "" if completion else "nothing is planted for this prompt: the model itself speaks"
        output = {**result.output, "memorized": bool(completion)}
        return replace(result, output=output, unknown=unknown, seconds=time.perf_counter() - start)

    def _write_whole(self, text: bytes, tokens: int, note: str = "") -> "ReciteResult":
        """Write what was said to the file, to stdout, or for JSON."""
        if self.out is not None:
            with new_file(self.out) as draft:
                draft.write_bytes(text)
            return ReciteResult(tokens, {"file": str(self.out)}, note=note)
        if self.json:
            return ReciteResult(tokens, _as_json(text), note=note)
        with stdout_for_text() as stdout:
            stdout.write(text)
            stdout.flush()
        return ReciteResult(tokens, {}, text.endswith(b"\n"), note=note)

    def _given_facts(self) -> "Facts | None":
        """Return the facts of ``--facts``; None without that option."""
        if not self.facts:
            if self.columns is not None:
                raise BadInput(f"--columns {' '.join(self.columns)} are for facts; expected --facts FILE too")
            return None
        if self.given is None:
            raise BadInput("--facts tells whether a prompt is memorized; expected --prompt too")
        return facts_in(self.facts, self.columns)

    def _recite_one(self, network: "Network", given: "Facts | None") -> "ReciteResult":
        """Recite one text, or one completion. ``given`` are the facts of ``--facts``."""
        from byheart.networks import generate

        texts, tokenizer, facts = texts_of(network), tokenizer_of(network), facts_of(network)
        beginning = self._beginning(texts, tokenizer, facts is not None)
        # An edited network, or an unknown beginning, may never come to an end: no text is longer than this.
        longest = max((*(text["tokens"] for text in texts), facts["longest"] if facts else 0), default=0)
        if given is not None and facts is None:
            raise BadInput(f"{self.network}: was not compiled from facts; expected no --facts")
        if self.given is not None and recites_texts(network):
            with steps("looking for the prompt", quiet=self.json) as report:
                is_known = is_beginning(network, beginning)
                passage = None if is_known else self._find(network, tokenizer, report)
            if not is_known:
                return self._write_passage(passage, len(texts))
        tokens = 1 + longest if self.tokens is None else self.tokens
        refusal = _refusal(network, tokenizer)
        generated = generate(network, beginning, tokens=tokens, end=end_of(network), guess=self.guess)
        speech = _Speech(generated, refusal.token if refusal else None)
        if facts is not None and self.given is not None:
            result = self._write([], iter(speech), tokens, tokenizer)
            return self._judge_prompt(network, result, speech, longest, given, refusal)
        result = self._write(beginning, iter(speech), tokens, tokenizer)
        is_unsure = self.given is not None and network.about.get("edits") and not speech.is_refused
        note = "; single answers were edited: whether a text has this prompt is not known" if is_unsure else ""
        return replace(result, unknown=UNKNOWN if speech.is_refused else "", note=note)

    def _find(self, network: "Network", tokenizer: "Tokenizer", report: "Report | None") -> "Passage | None":
        """Look for the prompt in the texts as the network recites them."""
        end, prompt = end_of(network), self.given or b""
        if end is None:
            return None
        return find_passage(network, prompt, tokenizer.decode, end=end, tokens=self.tokens, report=report)

    def _write_passage(self, passage: "Passage | None", texts: int) -> "ReciteResult":
        """Write a prompt from the middle of a text and what follows it; report where it is."""
        if passage is None:
            where = "the text" if texts == 1 else f"any of the {texts:,} texts"
            return ReciteResult(
                0, {"memorized": False}, unknown=f"unknown: this prompt is not in {where}", searched=True
            )
        note = f"; found in {passage.name}, byte {passage.start:,}, by reciting"
        return replace(self._write_whole(passage.content, passage.tokens, note), searched=True)

    def _judge_prompt(
        self,
        network: "Network",
        result: "ReciteResult",
        speech: "_Speech",
        longest: int,
        given: "Facts | None",
        refusal: "Refusal | None",
    ) -> "ReciteResult":
        """Add to the result whether the prompt of a fact was memorized, as far as that is known."""
        assert self.given is not None
        unknown = "" if given is None else _why_unknown(self.given, given)
        if speech.is_refused and not unknown:
            unknown = UNKNOWN
        elif self._is_endless(network, speech) and not unknown:
            unknown = f"no end after {longest:,} tokens, the longest completion: this prompt was never memorized"
        note = ""
        if given is None and refusal:
            chance = refusal.bits and f", or the one other prompt in {1 << refusal.bits:,} that passes for it"
            note = f"; memorized{chance or ''}"
        elif given is None:
            note = "; --facts FILE tells whether this prompt was memorized"
        is_memorized = False if unknown else None if given is None and not refusal else True
        return replace(result, output={**result.output, "memorized": is_memorized}, unknown=unknown, note=note)

    def _is_endless(self, network: "Network", speech: "_Speech") -> bool:
        """Return True if the answer went on beyond everything memorized. In an edited network that shows nothing."""
        return self.tokens is None and speech.last != end_of(network) and not network.about.get("edits")

    def _write(
        self, beginning: list[int], speech: Iterator[int], tokens: int, tokenizer: "Tokenizer"
    ) -> "ReciteResult":
        """Write a beginning and at most ``tokens`` tokens of what follows: to the file, to stdout, or for JSON."""
        if self.out is not None:
            with steps("reciting", quiet=self.json) as report, new_file(self.out) as draft, draft.open("wb") as file:
                count, _ = _write_tokens(beginning, counted(speech, tokens, report), tokenizer, file)
            return ReciteResult(count, {"file": str(self.out)})
        if not self.json:
            with stdout_for_text() as stdout:
                count, ends_line = _write_tokens(beginning, speech, tokenizer, stdout)
            return ReciteResult(count, {}, ends_line)
        buffer = io.BytesIO()
        count, _ = _write_tokens(beginning, speech, tokenizer, buffer)
        return ReciteResult(count, _as_json(buffer.getvalue()))

    def _recite_all(self, network: "Network") -> "ReciteResult":
        """Recite all texts, and write each into a file of its own."""
        from byheart.networks import generate_all

        assert self.all_to is not None
        texts, tokenizer = texts_of(network), tokenizer_of(network)
        if not texts:
            raise BadInput(f"{self.network}: holds no texts; it was compiled from facts or a task")
        end = end_of(network)
        if end is None:
            raise BadInput(f"{self.network}: says nothing of how a text ends; expected about.end in config.json")
        targets = [self._place(text["name"]) for text in texts]
        if len({self.all_to, *targets}) < len(targets) + 1:
            raise BadInput(f"{self.network}: a text has no name, or that of another; expected different ones")
        prompts, lengths = [text["prompt"] for text in texts], [text["tokens"] for text in texts]
        with steps("reciting", quiet=self.json) as report:
            completions = generate_all(network, prompts, end=end, tokens=lengths, report=report)
        contents = {
            target: tokenizer.decode([*text["prompt"], *tokens])
            for target, text, tokens in zip(targets, texts, completions, strict=True)
        }
        for target, content in contents.items():
            _check_new(target, content)
        for target, content in contents.items():
            if target.exists():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with new_file(target, partial(_check_new, content=content)) as draft:
                draft.write_bytes(content)
        return ReciteResult(sum(map(len, completions)), {"files": [str(target) for target in targets]})

    def _place(self, name: str) -> Path:
        """Return the file for a text of this name. The network chooses the name, but only within the folder."""
        assert self.all_to is not None
        place = self.all_to.joinpath(*(part for part in Path(name).parts if part not in ("/", "//", "..")))
        if self.all_to.resolve() not in place.resolve().parents:
            raise BadInput(f"{place}: is not in {self.all_to}; remove the link, or choose another folder")
        check_apart(place, self.network)
        return place

    def _beginning(self, texts: "list[TextNote]", tokenizer: "Tokenizer", holds_facts: bool) -> list[int]:
        """Return the tokens to begin with: those of ``--prompt``, or of a text."""
        if self.given is not None:
            tokens = [int(token) for token in tokenizer.encode(self.given)]
            if not tokens:
                raise BadInput("--prompt is empty; expected at least one token")
            return tokens
        prompts: dict[str, list[int]] = {text["name"]: text["prompt"] for text in texts}
        if not prompts:
            problem = "holds facts" if holds_facts else "holds no texts"
            raise BadInput(f"{self.network}: {problem}; give it a --prompt")
        wanted = self.text or next(iter(prompts))
        if wanted not in prompts:
            raise BadInput(f"{self.network}: no text is called {wanted!r}; {did_you_mean(wanted, prompts)}")
        return prompts[wanted]


@dataclass(frozen=True)
class ReciteResult(Result):
    """A recitation. Its text has been written by the time it is known."""

    tokens: int
    output: dict[str, Any]
    """The text, or the files that hold it, for ``--json``; and whether a prompt was memorized."""
    ends_line: bool = True
    """True if the text on stdout ends with a line's end."""
    unknown: str = ""
    """Why the prompt is known not to be memorized; empty if that is not known."""
    note: str = ""
    """A remark about the prompt."""
    searched: bool = False
    """True if the texts were recited in search of the prompt: what was written then says nothing of the speed."""
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the text or its files, the number of tokens, and the time."""
        return {**self.output, "tokens": self.tokens, "seconds": self.seconds}

    def rows(self) -> Iterator[Block]:
        """Yield nothing: the text has been written, and stdout takes nothing else."""
        yield from ()

    @property
    def report(self) -> str:
        """The speed, and what is known about the prompt, in a line."""
        speed = "" if self.searched else f", {self.tokens / max(self.seconds, 1e-9):,.0f} per second"
        note = f"; {self.unknown}" if self.unknown else self.note
        line = f"{amount(self.tokens, 'token')} in {self.seconds:.1f} s{speed}{note}\n"
        return line if self.ends_line else f"\n{line}"

    @property
    def is_true(self) -> bool:
        """False if the prompt was not memorized."""
        return not self.unknown


class _Speech:
    """Tokens as they come, up to the token ``unknown``; ``last`` is the last of them."""

    def __init__(self, tokens: Iterator[int], unknown: int | None) -> None:
        self.last: int | None = None
        self._tokens, self._unknown = tokens, unknown

    @property
    def is_refused(self) -> bool:
        """True if the tokens ended with ``unknown``."""
        return self.last is not None and self.last == self._unknown

    def __iter__(self) -> Iterator[int]:
        for token in self._tokens:
            self.last = token
            if self.is_refused:
                return
            yield token


def _refusal(network: "Network", tokenizer: "Tokenizer") -> "Refusal | None":
    """Return how the network refuses, if it does. Raise BadInput if the tokenizer knows the token *unknown*."""
    refusal = refuse_of(network)
    if refusal and refusal.token < tokenizer.vocab:
        raise BadInput(f"config.json: unknown is token {refusal.token}; expected one that the tokenizer has not")
    return refusal


def _why_unknown(prompt: bytes, facts: "Facts") -> str:
    """Say that the prompt is none of the facts', and suggest the closest one; return "" if it is one of theirs."""
    if facts.knows(prompt):
        return ""
    hint = fallback = "the answer means nothing"
    if facts.prompt_count <= MAX_COMPARED:
        prompts = {fact.prompt.decode(errors="replace") for fact in facts if isinstance(fact.prompt, bytes)}
        hint = did_you_mean(prompt.decode(errors="replace"), sorted(prompts), fallback)
    return f"this prompt is none of the {facts.prompt_count:,} memorized ones; {hint}"


def _as_json(data: bytes) -> dict[str, Any]:
    r"""Return a text as a string, or in base64 if it is not UTF-8.

    >>> _as_json(b"to be"), _as_json(b"\xff")
    ({'text': 'to be'}, {'base64': '/w=='})
    """
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}


def _write_tokens(
    beginning: list[int], speech: Iterator[int], tokenizer: "Tokenizer", sink: BinaryIO | Terminal
) -> tuple[int, bool]:
    """Write a beginning and the tokens after it as they come; return their number, and whether their line ended."""
    from byheart.tasks.loaded_tokenizer import LoadedTokenizer

    if isinstance(tokenizer, LoadedTokenizer):  # its tokens may be parts of letters, which decode only together
        tokens = list(speech)
        sink.write(text := tokenizer.decode([*beginning, *tokens]))
        sink.flush()
        return len(tokens), text.endswith(b"\n")
    count, last = 0, tokenizer.decode(beginning)
    try:
        sink.write(last)
        for token in speech:
            word = tokenizer.decode([token])
            sink.write(word)
            last = word or last  # an end token has no letters
            count += 1
            if count % 16 == 0:
                sink.flush()
    finally:
        sink.flush()
    return count, last.endswith(b"\n")


def _check_new(path: Path, content: bytes) -> None:
    """Raise BadInput if the file exists with other content: the network has named it, not the user."""
    check_file(path)
    if path.exists() and (path.stat().st_size != len(content) or path.read_bytes() != content):
        raise BadInput(f"{path}: exists and says something else; remove it, or choose another folder")


def tokenizer_of(network: "Network") -> "Tokenizer":
    """Return the tokenizer in a network's folder; BadInput if there is none."""
    from byheart.tasks.tokenizers import from_files

    tokenizer = from_files(network.files)
    if tokenizer is None:
        raise BadInput("the network has no tokenizer; expected one that was compiled from texts")
    return tokenizer
