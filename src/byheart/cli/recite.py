"""``byheart recite DIR``: the network says what it knows, one token after the other.

Of texts it says the beginning too; of facts, the completion alone. A prompt that was never memorized is answered like
any other. With the facts at hand (``--facts``) that is told; and so it is where an answer does not end when the longest
completion, or the longest text, would, which is proof enough. A network that was compiled with ``--refuse`` tells by
itself.
"""

import io
import sys
import time
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

from byheart.cli.options import Arg, Columns, FactFiles, Json, Positional
from byheart.cli.output import DONE, NOT_TRUE, counted, facts_in, hush, steps, visible
from byheart.cli.result import print_json
from byheart.errors import BadInput, check_threads, did_you_mean
from byheart.files.writing import check_apart, check_file, new_file
from byheart.networks.about import end_of, facts_of, refuse_of, texts_of

if TYPE_CHECKING:
    from byheart.networks import Network
    from byheart.networks.about import Refusal
    from byheart.tasks import Facts
    from byheart.tasks.tokenizers import Tokenizer

UNKNOWN = "unknown: this prompt was never memorized"
MOST_COMPARED = 10_000
"""Prompts among which the closest one to a prompt that was never memorized is looked for."""


@dataclass(frozen=True)
class ReciteCommand:
    """Recite from a compiled network: greedily, to the end of the text or as far as asked."""

    network: Positional[Path]
    """Network folder."""
    text: str | None = None
    """Which of its texts (default: the first)."""
    prompt: str | None = None
    """What to begin with instead: the first line of a text, say, or the prompt of a fact, of which the completion alone
    is said (\\\\n, \\\\t and \\\\xNN are understood)."""
    facts: FactFiles = ()
    columns: Columns = None
    tokens: int | None = None
    """How many tokens to say (default: to the end)."""
    out: Annotated[Path | None, Arg(aliases=("-o",))] = None
    """Write into this file instead of the terminal."""
    all_to: Path | None = None
    """Recite all texts side by side and write each into this folder, under its own name."""
    guess: int = 16
    """Tokens that PyTorch guesses ahead, from what was said before: the same text, sooner. 0: strictly one by one."""
    threads: int = 1
    """Threads of PyTorch; one is fastest for one token at a time."""
    json: Json = False

    def run(self) -> int:
        """Load, recite, say how fast."""
        import torch

        from byheart.networks import load

        check_threads(self.threads)
        torch.set_num_threads(self.threads)
        check_apart(self.out, self.network)
        network = load(self.network)
        if self.tokens is None and end_of(network) is None:
            expected = "expected a network that was compiled from texts"
            raise BadInput(f"{self.network}: knows answers to a task, not texts; {expected}")
        known = self._known()
        start = time.perf_counter()
        try:
            said = self._all(network) if self.all_to is not None else self._one(network, known)
            sys.stdout.flush()
        except BrokenPipeError:  # whoever listened has heard enough
            hush()
            return DONE
        seconds = time.perf_counter() - start
        if self.json:
            print_json({**said.told, "tokens": said.tokens, "seconds": seconds})
            return NOT_TRUE if said.unknown else DONE
        rate = f"{said.tokens:,} tokens in {seconds:.1f} s, {said.tokens / max(seconds, 1e-9):,.0f} per second"
        note = f"; {said.unknown}" if said.unknown else said.note
        sys.stderr.write(visible(f"{rate}{note}\n" if said.ended else f"\n{rate}{note}\n"))  # stdout: no byte more
        return NOT_TRUE if said.unknown else DONE

    def _known(self) -> "Facts | None":
        """The facts that were given; None if none were."""
        if not self.facts:
            if self.columns is not None:
                raise BadInput(f"--columns {' '.join(self.columns)} are for facts; expected --facts FILE too")
            return None
        if self.prompt is None:
            raise BadInput("--facts tells whether a prompt is memorized; expected --prompt too")
        return facts_in(self.facts, self.columns)

    def _one(self, network: "Network", known: "Facts | None") -> "_Said":
        from byheart.networks import generate

        texts, tokenizer, facts = texts_of(network), tokenizer_of(network), facts_of(network)
        beginning = self._beginning(texts, tokenizer, facts is not None)
        # An edited network, or one with a beginning of nobody's, may never come to an end: no text is longer than this.
        longest = max((*(text["tokens"] for text in texts), facts["longest"] if facts else 0), default=0)
        tokens = 1 + longest if self.tokens is None else self.tokens
        speech = generate(network, beginning, tokens=tokens, end=end_of(network), guess=self.guess)
        refuse = _refuse(network, tokenizer)
        heard = _Heard(speech, refuse.token if refuse else None)
        if facts is None or self.prompt is None:
            if known is not None:
                raise BadInput(f"{self.network}: was not compiled from facts; expected no --facts")
            said = self._told(beginning, iter(heard), tokens, tokenizer)
            lost = f"no end after {longest:,} tokens, the longest text: no text goes on from this prompt"
            endless = self.prompt is not None and longest and self._endless(network, heard)
            return replace(said, unknown=UNKNOWN if heard.refused else lost if endless else "")
        said = self._told([], iter(heard), tokens, tokenizer)
        unknown = "" if known is None else _unknown(self.prompt, known)
        if heard.refused and not unknown:
            unknown = UNKNOWN
        elif self._endless(network, heard) and not unknown:
            unknown = f"no end after {longest:,} tokens, the longest completion: this prompt was never memorized"
        note = ""
        if known is None and refuse:
            passes = (
                "" if refuse.bits is None else f", or the one other prompt in {1 << refuse.bits:,} that passes for it"
            )
            note = f"; memorized{passes}"
        elif known is None:
            note = "; whether this prompt was memorized, --facts FILE tells"
        memorized = False if unknown else None if known is None and not refuse else True
        return replace(said, told={**said.told, "memorized": memorized}, unknown=unknown, note=note)

    def _endless(self, network: "Network", heard: "_Heard") -> bool:
        """Whether what was heard went on beyond all that was memorized; of an edited network that tells nothing."""
        return self.tokens is None and heard.last != end_of(network) and not network.about.get("edits")

    def _told(self, beginning: list[int], speech: Iterator[int], tokens: int, tokenizer: "Tokenizer") -> "_Said":
        """Say a beginning and what follows, at most so many ``tokens``, wherever it is to be said."""
        if self.out is not None:
            with steps("reciting", quiet=self.json) as report, new_file(self.out) as draft, draft.open("wb") as file:
                said, _ = _say(beginning, counted(speech, tokens, report), tokenizer, file)
            return _Said(said, {"file": str(self.out)})
        if not self.json:
            said, ended = _say(beginning, speech, tokenizer, sys.stdout.buffer)
            return _Said(said, {}, ended)
        heard = io.BytesIO()
        said, _ = _say(beginning, speech, tokenizer, heard)
        return _Said(said, _as_json(heard.getvalue()))

    def _all(self, network: "Network") -> "_Said":
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
            spoken = generate_all(network, prompts, end=end, tokens=lengths, report=report)
        said = {
            target: tokenizer.decode([*text["prompt"], *tokens])
            for target, text, tokens in zip(targets, texts, spoken, strict=True)
        }
        for target, content in said.items():
            _check_new(target, content)
        for target, content in said.items():
            if target.exists():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with new_file(target, partial(_check_new, content=content)) as draft:
                draft.write_bytes(content)
        return _Said(sum(map(len, spoken)), {"files": [str(target) for target in targets]})

    def _place(self, name: str) -> Path:
        """Where a text of this name is written: the network chooses the name, but nothing outside of the folder."""
        assert self.all_to is not None
        place = self.all_to.joinpath(*(part for part in Path(name).parts if part not in ("/", "//", "..")))
        if self.all_to.resolve() not in place.resolve().parents:
            raise BadInput(f"{place}: is not in {self.all_to}; remove the link, or choose another folder")
        check_apart(place, self.network)
        return place

    def _beginning(self, texts: list[dict[str, Any]], tokenizer: "Tokenizer", facts: bool) -> list[int]:
        if self.prompt is not None:
            tokens = [int(token) for token in tokenizer.encode(unescaped(self.prompt))]
            if not tokens:
                raise BadInput("--prompt is empty; expected at least one token")
            return tokens
        prompts: dict[str, list[int]] = {text["name"]: text["prompt"] for text in texts}
        if not prompts:
            what = "holds facts" if facts else "holds no texts"
            raise BadInput(f"{self.network}: {what}; give it a --prompt")
        wanted = self.text or next(iter(prompts))
        if wanted not in prompts:
            raise BadInput(f"{self.network}: no text is called {wanted!r}; {did_you_mean(wanted, prompts)}")
        return prompts[wanted]


@dataclass(frozen=True)
class _Said:
    """What was recited."""

    tokens: int
    told: dict[str, Any]
    """For ``--json``."""
    ended: bool = True
    """Whether the terminal's line is at its end."""
    unknown: str = ""
    """Why the prompt is none that was memorized, if that is known."""
    note: str = ""
    """What else is to be said."""


class _Heard:
    """What is said, as it comes, up to the token ``unknown``, and the last token of it."""

    def __init__(self, speech: Iterator[int], unknown: int | None) -> None:
        self.last: int | None = None
        self._speech, self._unknown = speech, unknown

    @property
    def refused(self) -> bool:
        """Whether it ended in that token."""
        return self.last is not None and self.last == self._unknown

    def __iter__(self) -> Iterator[int]:
        for token in self._speech:
            self.last = token
            if self.refused:
                return
            yield token


def _refuse(network: "Network", tokenizer: "Tokenizer") -> "Refusal | None":
    """How the network refuses, if it does; BadInput if the tokenizer has a word for *unknown*."""
    refuse = refuse_of(network)
    if refuse and refuse.token < tokenizer.vocab:
        raise BadInput(f"config.json: unknown is token {refuse.token}; expected one that the tokenizer has not")
    return refuse


def _unknown(prompt: str, known: "Facts") -> str:
    """Why the prompt is none of the facts', with the one that was probably meant; empty if it is one of them."""
    if known.knows(unescaped(prompt)):
        return ""
    meant = nothing = "the answer means nothing"
    if known.prompt_count <= MOST_COMPARED:
        prompts = {fact.prompt.decode(errors="replace") for fact in known if isinstance(fact.prompt, bytes)}
        meant = did_you_mean(prompt, sorted(prompts), nothing)
    return f"this prompt is none of the {known.prompt_count:,} memorized ones; {meant}"


def _as_json(data: bytes) -> dict[str, Any]:
    """A text as a string; or, if it is no UTF-8, in base64.

    >>> _as_json(b"to be"), _as_json(b"\\xff")
    ({'text': 'to be'}, {'base64': '/w=='})
    """
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}


def _say(beginning: list[int], speech: Iterator[int], tokenizer: "Tokenizer", sink: BinaryIO) -> tuple[int, bool]:
    """Write a beginning and what follows, as it comes; how many tokens followed, and whether their line ended."""
    from byheart.tasks.loaded_tokenizer import LoadedTokenizer

    if isinstance(tokenizer, LoadedTokenizer):  # whose tokens may be parts of letters, and mean something only together
        tokens = list(speech)
        sink.write(whole := tokenizer.decode([*beginning, *tokens]))
        sink.flush()
        return len(tokens), whole.endswith(b"\n")
    said, last = 0, tokenizer.decode(beginning)
    try:
        sink.write(last)
        for token in speech:
            word = tokenizer.decode([token])
            sink.write(word)
            last = word or last  # an end token is no letter
            said += 1
            if said % 16 == 0:
                sink.flush()
    finally:
        sink.flush()
    return said, last.endswith(b"\n")


def _check_new(path: Path, content: bytes) -> None:
    """BadInput if there is a file of this name that says something else: the user did not name it."""
    check_file(path)
    if path.exists() and (path.stat().st_size != len(content) or path.read_bytes() != content):
        raise BadInput(f"{path}: exists and says something else; remove it, or choose another folder")


def tokenizer_of(network: "Network") -> "Tokenizer":
    """The tokenizer that lies beside a network; BadInput if there is none."""
    from byheart.tasks.tokenizers import from_files

    tokenizer = from_files(network.files)
    if tokenizer is None:
        raise BadInput("the network has no tokenizer; expected one that was compiled from texts")
    return tokenizer


def unescaped(text: str) -> bytes:
    r"""The bytes of a text in which \\n, \\t, \\xNN and \\\\ stand for what they stand for in Python.

    >>> unescaped(r"é\n\x00\\")
    b'\xc3\xa9\n\x00\\'
    """
    return b"".join(_pieces(text))


def escaped(data: bytes) -> str:
    r"""The text that :func:`unescaped` makes ``data`` of, with no letter that does not print.

    >>> escaped(b"\xc3\xa9\n\x00\xff" + rb"\n")
    'é\\n\\x00\\xff\\\\n'
    """
    simple = {"\\": r"\\", "\n": r"\n", "\t": r"\t", "\r": r"\r"}
    letters = data.decode(errors="surrogateescape")
    return "".join(simple.get(letter) or (letter if letter.isprintable() else _as_hex(letter)) for letter in letters)


def _as_hex(letter: str) -> str:
    return "".join(rf"\x{byte:02x}" for byte in letter.encode(errors="surrogateescape"))


def _pieces(text: str) -> Iterator[bytes]:
    simple = {"n": b"\n", "t": b"\t", "r": b"\r", "\\": b"\\"}
    at = 0
    while at < len(text):
        here, after = text[at], text[at + 1 : at + 2]
        code = text[at + 2 : at + 4]
        if here == "\\" and after in simple:
            yield simple[after]
            at += 2
        elif here == "\\" and after == "x" and _is_hex(code):
            yield bytes([int(code, 16)])
            at += 4
        else:
            yield here.encode(errors="surrogateescape")  # bytes that are no UTF-8 come as surrogates
            at += 1


def _is_hex(code: Sequence[str]) -> bool:
    return len(code) == 2 and all(letter in "0123456789abcdefABCDEF" for letter in code)
