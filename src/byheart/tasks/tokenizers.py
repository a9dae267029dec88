"""Tokenizers: turn texts into token ids and back, byte for byte.

Ids 0 to 255 are the bytes and 256 is the end of a text, in every tokenizer here. :class:`BytePairs` adds ids for byte
strings that are frequent in the texts it was trained on. Both are saved as Hugging Face's files for a byte-level BPE,
so that transformers reads them as they are. :mod:`.loaded_tokenizer` has tokenizers from elsewhere, with their own ids.
"""

import json
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from byheart.errors import BadInput, missing_package
from byheart.files.untrusted import parse_object
from byheart.tasks.arrays import check_count
from byheart.tasks.loaded_tokenizer import CONFIG_FILE, TOKENIZER_FILE, LoadedTokenizer, begun_with, loaded_from

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Library

Tokens = npt.NDArray[np.int32]
Merges = tuple[tuple[bytes, bytes], ...]
"""Pairs of byte strings that are merged into one token, in order."""

END = 256
END_NAME = "<|end|>"
PORTION = 2**16
_PARTS = ("normalizer", "pre_tokenizer", "model", "added_tokens", "decoder")
"""Keys of ``tokenizer.json`` that determine how texts become ids and ids become texts."""

# GPT-2's way to write bytes as printable characters: most of Latin-1 as it is, the rest as the characters from 256 on.
_PRINTABLE = {*range(33, 127), *range(161, 173), *range(174, 256)}
_REST = [byte for byte in range(256) if byte not in _PRINTABLE]
_LETTERS = "".join(chr(byte if byte in _PRINTABLE else 256 + _REST.index(byte)) for byte in range(256))
_SINGLE = (*(bytes([byte]) for byte in range(256)), b"")
_BYTES = {letter: byte for byte, letter in enumerate(_LETTERS)}


class Tokenizer(Protocol):
    """The interface of all tokenizers."""

    @property
    def name(self) -> str:
        """Name on the command line."""

    @property
    def vocab(self) -> int:
        """Number of token ids, including the end token."""

    @property
    def end(self) -> int:
        """Id of the token that ends a text."""

    def encode(self, data: bytes) -> Tokens:
        """Return the tokens of ``data``: int32 [T], without an end token."""

    def decode(self, ids: Iterable[int]) -> bytes:
        """Return the bytes of the tokens ``ids``, decoded one by one. An end token has none."""

    def files(self, *, begins: bool = False) -> dict[str, bytes]:
        """Return ``tokenizer.json`` and ``tokenizer_config.json``, for :func:`from_files` and for transformers.

        ``begins`` makes transformers begin every text with the end token.
        """


@dataclass(frozen=True)
class Bytes:
    """A tokenizer whose tokens are bytes. It takes any data.

    >>> Bytes().encode("né".encode())
    array([110, 195, 169], dtype=int32)
    >>> Bytes().decode([110, 195, 169, Bytes.end]).decode()
    'né'
    """

    name: ClassVar[str] = "bytes"
    vocab: ClassVar[int] = END + 1
    end: ClassVar[int] = END

    def encode(self, data: bytes) -> Tokens:
        """Return the bytes of ``data``: int32 [T]."""
        return np.frombuffer(data, np.uint8).astype(np.int32)

    def decode(self, ids: Iterable[int]) -> bytes:
        """Return the bytes ``ids``. An end token has none."""
        return _joined(ids, _SINGLE)

    def files(self, *, begins: bool = False) -> dict[str, bytes]:
        """Return ``tokenizer.json`` and ``tokenizer_config.json``."""
        return _files((), begins)


@dataclass(frozen=True)
class BytePairs:
    """Byte-pair encoding: bytes, and frequent strings of bytes that were merged. It takes UTF-8 text.

    Nothing is merged across the end of a line. So a prompt that ends with a newline has the same tokens as in the whole
    text.

    >>> tokenizer = BytePairs(merges=((b"a", b"b"),))
    >>> tokenizer.vocab
    258
    >>> tokenizer.decode([257, 97, tokenizer.end])
    b'aba'
    """

    name: ClassVar[str] = "bpe"
    end: ClassVar[int] = END
    merges: Merges

    @classmethod
    def train(cls, texts: Sequence[bytes], vocab: int) -> Self:
        """Train a tokenizer of at most ``vocab`` ids that merges the most frequent pairs in ``texts``.

        It has fewer ids if no pair of tokens occurs twice any more. The same texts give the same tokenizer. All texts
        are in memory at once, and with them every word once, and all places of every pair.
        """
        if check_count("vocab", vocab) <= Bytes.vocab:
            raise BadInput(f"vocab is {vocab}; expected more than {Bytes.vocab}, or --tokenizer bytes")
        library = _library(())
        from tokenizers.trainers import BpeTrainer

        # The trainer knows nothing of the end token, so that no text can be mistaken for it. Every merge takes at least
        # one token out of the texts, so there are no more than bytes; the trainer makes room for all it is told of.
        most = min(vocab - 1, END + sum(map(len, texts)))
        trainer = BpeTrainer(vocab_size=most, min_frequency=2, initial_alphabet=list(_LETTERS), show_progress=False)
        library.train_from_iterator((_text(data, f"texts[{number}]: ") for number, data in enumerate(texts)), trainer)
        merges = json.loads(library.to_str())["model"]["merges"]
        return cls(tuple((_bytes(first), _bytes(second)) for first, second in merges))

    @property
    def vocab(self) -> int:
        """Number of token ids, including the end token."""
        return len(self._pieces)

    def encode(self, data: bytes) -> Tokens:
        """Return the tokens of ``data``: int32 [T], without an end token. They always decode to ``data``.

        Merges may come from a folder of unknown origin: a tokenizer that changed a text would change the questions.
        """
        portions = list(_portions(_text(data)))
        ids = [encoding.ids for encoding in self._library.encode_batch_fast(portions, add_special_tokens=False)]
        for portion, tokens in zip(portions, ids, strict=True):
            if b"".join([self._pieces[token] for token in tokens]) != portion.encode():
                raise BadInput("the tokenizer's merges do not give the text back; expected those it was made with")
        return np.concatenate([np.array(tokens, np.int32) for tokens in ids])

    def decode(self, ids: Iterable[int]) -> bytes:
        """Return the bytes of the tokens ``ids``, decoded one by one. An end token has none."""
        return _joined(ids, self._pieces)

    def files(self, *, begins: bool = False) -> dict[str, bytes]:
        """Return ``tokenizer.json`` and ``tokenizer_config.json``."""
        return _files(self.merges, begins)

    @cached_property
    def _pieces(self) -> tuple[bytes, ...]:
        return _pieces(self.merges)

    @cached_property
    def _library(self) -> "Library":
        return _library(self.merges)


def from_files(files: Mapping[str, bytes]) -> Bytes | BytePairs | LoadedTokenizer | None:
    """Return the tokenizer of these files, or None if there is none; one without merges is :class:`Bytes`.

    Files that are marked as loaded are used as they are; all others must have Byheart's layout.

    >>> from_files(Bytes().files())
    Bytes()
    """
    if TOKENIZER_FILE not in files:
        return None
    try:
        description = parse_object(files[TOKENIZER_FILE])
        loaded = loaded_from(files)
    except BadInput as error:
        raise BadInput(f"{TOKENIZER_FILE}: {error}") from error
    if loaded is not None:
        return loaded
    try:
        merges = tuple((_bytes(first), _bytes(second)) for first, second in description["model"]["merges"])
        # What else the file says does not change ids or texts, and transformers rewrites some of it.
        ours = _is_built_up(merges) and all(description[part] == _description(merges)[part] for part in _PARTS)
    except (LookupError, TypeError, ValueError):
        ours = False
    if not ours:
        raise BadInput(f"{TOKENIZER_FILE}: not a tokenizer of byheart; expected the file that came with the network")
    return BytePairs(merges) if merges else Bytes()


def _is_built_up(merges: Merges) -> bool:
    """Return True if every merge joins bytes or results of earlier merges."""
    pieces = {bytes([byte]) for byte in range(256)}
    for first, second in merges:
        if first not in pieces or second not in pieces:
            return False
        pieces.add(first + second)
    return True


def _text(data: bytes, where: str = "") -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{where}byte {error.start} is not UTF-8 text; expected text, or --tokenizer bytes") from error


def _portions(text: str) -> Iterator[str]:
    """Cut ``text`` after newlines, where tokens end anyway. Several portions are encoded faster than one."""
    start = 0
    while (newline := text.find("\n", start + PORTION)) >= 0:
        yield text[start : newline + 1]
        start = newline + 1
    yield text[start:]


def _joined(ids: Iterable[int], pieces: tuple[bytes, ...]) -> bytes:
    numbers = [operator.index(number) for number in ids]
    for place, number in enumerate(numbers):
        if not 0 <= number < len(pieces):
            raise BadInput(f"ids[{place}] is {number}; expected 0 to {len(pieces) - 1} (vocab = {len(pieces)})")
    return b"".join([pieces[number] for number in numbers])


def _pieces(merges: Merges) -> tuple[bytes, ...]:
    """Return the bytes of each token id. If two merges make the same string, the first gives it its id."""
    merged = dict.fromkeys(first + second for first, second in merges)
    return (*_SINGLE, *merged)


def _letters(piece: bytes) -> str:
    return "".join(_LETTERS[byte] for byte in piece)


def _bytes(letters: str) -> bytes:
    return bytes(_BYTES[letter] for letter in letters)


def _description(merges: Merges) -> dict[str, Any]:
    """Return the tokenizer in the format of Hugging Face's ``tokenizer.json``."""
    vocab = {_letters(piece): number for number, piece in enumerate(_pieces(merges))}
    del vocab[""]
    # Words that the pre-tokenizer makes never join letters and other signs: no merge spells the name of the end token.
    vocab[END_NAME] = END
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    by_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    newline = {"type": "Split", "pattern": {"String": "\n"}, "behavior": "Isolated", "invert": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": END, "content": END_NAME, **flags}],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [newline, by_bytes]},
        "post_processor": None,
        "decoder": by_bytes,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": dict(sorted(vocab.items(), key=lambda item: item[1])),
            "merges": [[_letters(first), _letters(second)] for first, second in merges],
        },
    }


def _files(merges: Merges, begins: bool) -> dict[str, bytes]:
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END_NAME,
        "pad_token": END_NAME,
        # What is generated follows the last token, which padding on the right would separate it from.
        "padding_side": "left",
        # A text that happens to hold the name of the end token does not end there.
        "split_special_tokens": True,
        "clean_up_tokenization_spaces": False,
    }
    tokenizer = _description(merges)
    if begins:
        config |= {"bos_token": END_NAME}
        tokenizer["post_processor"] = begun_with(END_NAME, END)
    contents = {TOKENIZER_FILE: tokenizer, CONFIG_FILE: config}
    return {
        name: (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode() for name, content in contents.items()
    }


def _library(merges: Merges) -> "Library":
    try:
        from tokenizers import Tokenizer as Library
    except ImportError as error:
        raise BadInput(missing_package("tokenizers", "byte-pair encoding", "hf")) from error
    library = Library.from_str(json.dumps(_description(merges)))
    library.encode_special_tokens = True  # as split_special_tokens in the configuration
    return library
