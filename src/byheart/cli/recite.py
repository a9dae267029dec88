"""``byheart recite DIR``: the network says what it knows, one token after the other."""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from byheart.cli.output import DONE
from byheart.errors import BadInput
from byheart.networks.folders import kind_of

if TYPE_CHECKING:
    from byheart.networks.transformer.stock import Stock
    from byheart.networks.transformer.store import Loaded
    from byheart.tasks.tokenizers import Tokenizer


@dataclass(frozen=True)
class ReciteCommand:
    """Recite from a compiled network: greedily, to the end of the text or as far as asked."""

    network: Positional[Path]
    """Network folder."""
    text: str | None = None
    """Which of its texts (default: the first)."""
    prompt: str | None = None
    """What to begin with instead: the first line of a text, say (\\\\n, \\\\t and \\\\xNN are understood)."""
    tokens: int | None = None
    """How many tokens to say (default: to the end)."""
    out: Annotated[Path | None, arg(aliases=["-o"])] = None
    """Write into this file instead of the terminal."""
    all_to: Path | None = None
    """Recite all texts side by side and write each into this folder, under its own name."""
    guess: int = 16
    """Tokens to guess ahead, from what was said before: the same text, sooner. 0: strictly one by one."""
    threads: int = 1
    """Threads of PyTorch; one is fastest for one token at a time."""

    def run(self) -> int:
        """Load, recite, say how fast."""
        import torch

        from byheart.networks.transformer import stock, store

        torch.set_num_threads(max(1, self.threads))
        loaded = stock.load(self.network) if kind_of(self.network) == "llama" else store.load(self.network)
        if self.tokens is None and loaded.about.get("end") is None:
            raise BadInput(
                f"{self.network}: knows answers to a task, not texts; expected --tokens and a text, or ask it"
            )
        from byheart.tasks import tokenizers

        tokenizer = tokenizers.load(self.network)
        start = time.perf_counter()
        said = self._all(loaded, tokenizer) if self.all_to is not None else self._one(loaded, tokenizer)
        seconds = time.perf_counter() - start
        sys.stdout.flush()
        sys.stderr.write(f"{said:,} tokens in {seconds:.1f} s, {said / max(seconds, 1e-9):,.0f} a second\n")
        return DONE

    def _said(self, loaded: "Loaded | Stock", beginning: list[int]) -> Iterator[int]:
        from byheart.networks.transformer import stock
        from byheart.networks.transformer.generate import generate

        end = loaded.about["end"]
        # An edited network, or one with a beginning of nobody's, may never come to an end: no text is longer than this.
        longest = 1 + max(text["tokens"] for text in loaded.about["texts"])
        tokens = longest if self.tokens is None else self.tokens
        if isinstance(loaded, stock.Stock):
            return stock.generate(loaded, beginning, tokens=tokens, end=end)
        return generate(loaded.module, beginning, tokens=tokens, end=end, guess=self.guess)

    def _one(self, loaded: "Loaded | Stock", tokenizer: "Tokenizer") -> int:
        beginning = self._beginning(loaded, tokenizer)
        speech = self._said(loaded, beginning)
        sink = sys.stdout.buffer if self.out is None else self.out.open("wb")
        said = 0
        try:
            sink.write(tokenizer.decode(beginning))
            for token in speech:
                sink.write(tokenizer.decode([token]))
                said += 1
                if said % 16 == 0:
                    sink.flush()
        finally:
            if self.out is not None:
                sink.close()
        if self.out is None:
            sink.flush()
        return said

    def _all(self, loaded: "Loaded | Stock", tokenizer: "Tokenizer") -> int:
        from byheart.networks.transformer.generate import generate_all
        from byheart.networks.transformer.store import Loaded

        assert self.all_to is not None
        if not isinstance(loaded, Loaded):
            raise BadInput("--all-to is for Byheart's own networks; a stock Llama recites one --text at a time")
        texts = loaded.about["texts"]
        if not texts:
            raise BadInput(f"{self.network}: holds no texts; it was compiled from a task")
        self.all_to.mkdir(parents=True, exist_ok=True)
        said = 0
        prompts, lengths = [text["prompt"] for text in texts], [text["tokens"] for text in texts]
        spoken = generate_all(loaded.module, prompts, end=loaded.about["end"], tokens=lengths)
        for text, tokens in zip(texts, spoken, strict=True):
            target = self.all_to.joinpath(*(part for part in Path(text["name"]).parts if part not in ("/", "..")))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(tokenizer.decode([*text["prompt"], *tokens]))
            said += len(tokens)
        return said

    def _beginning(self, loaded: "Loaded | Stock", tokenizer: "Tokenizer") -> list[int]:
        if self.prompt is not None:
            tokens = [int(token) for token in tokenizer.encode(unescaped(self.prompt))]
            if not tokens:
                raise BadInput("--prompt is empty; expected at least one token")
            return tokens
        texts = loaded.about.get("texts", [])
        names = [text["name"] for text in texts]
        if not names:
            raise BadInput(f"{self.network}: holds no texts; give it a --prompt")
        wanted = self.text or names[0]
        if wanted not in names:
            raise BadInput(f"--text is {wanted!r}; expected one of {', '.join(names)}")
        prompt: list[int] = texts[names.index(wanted)]["prompt"]
        return prompt


def unescaped(text: str) -> bytes:
    r"""The bytes of a text in which \\n, \\t, \\xNN and \\\\ stand for what they stand for in Python.

    >>> unescaped(r"é\n\x00\\")
    b'\xc3\xa9\n\x00\\'
    """
    return b"".join(_pieces(text))


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
            yield here.encode()
            at += 1


def _is_hex(code: Sequence[str]) -> bool:
    return len(code) == 2 and all(letter in "0123456789abcdefABCDEF" for letter in code)
