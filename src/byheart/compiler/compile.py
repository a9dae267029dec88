"""The way in: a task, texts, facts or files; read, made into contexts, compiled in one of the layouts."""

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from byheart.compiler.rectangular.recipe import (
    ASKED,
    NAME,
    ONE_TABLE,
    CompilerSettings,
    compile_rectangular,
    memory_for,
)
from byheart.compiler.rectangular.refusing import whole
from byheart.constructions.built import Built
from byheart.constructions.construction import settings_from
from byheart.errors import BadInput, check_seed
from byheart.executors import Workplace
from byheart.files import memory
from byheart.files.memory import check_room
from byheart.progress import Report
from byheart.tasks import Questions
from byheart.tasks.contexts import Contexts
from byheart.tasks.facts import Facts
from byheart.tasks.loaded_tokenizer import LoadedTokenizer, load_tokenizer
from byheart.tasks.questions import QuestionsLike, Texts, as_contexts, read_questions
from byheart.tasks.task_files import TASK_READERS
from byheart.tasks.texts import list_files
from byheart.tasks.tokenizers import BytePairs, Bytes, Tokenizer
from byheart.tasks.windows import MAX_WINDOW

if TYPE_CHECKING:
    from byheart.compiler.rectangular.shelf import Shelf

TokenizerName = Literal["bytes", "bpe"]
MOST_IDS = 1 << 22
"""Tokens, and labels: config.json lists the length of every label's code, and takes no more than 64 MB."""
VOCAB = 1024
"""Tokens of byte pairs, if nobody says how many."""


def compile(
    questions: QuestionsLike,
    *,
    settings: CompilerSettings | None = None,
    tokenizer: TokenizerName | Path | None = None,
    vocab: int | None = None,
    window: int | None = None,
    seed: int = 0,
    executor: Workplace | None = None,
    keep: "Shelf | None" = None,
    report: Report | None = None,
    **given: Any,
) -> Built:
    """A float Transformer that recites texts, each from its first tokens on, knows facts, or answers a next-token task.

    ``questions``: a task; facts, or pairs (prompt, completion); a text, or several by name; paths. ``tokenizer``
    ("bytes" or "bpe"; None: bytes; a path: the ``tokenizer.json`` there) is for texts, and ``vocab`` (None: 1024), how
    many tokens there are to be at most, for "bpe".
    Settings are given one by one (``layout="uniform"``) or all together.
    ``window`` None: the smallest power of two at which no context asks for two answers. Files for which the machine has
    no room, in memory or on the disk, are refused before they are read.
    ``executor`` says where a network of several shards is solved, and ``keep`` is a shelf for shards that are solved:
    a compile that was killed finds them there. The network is the same.

    >>> built = compile("To be, or not to be, that is the question.")
    >>> built.network.window, built.questions.size.examples
    (8, 42)
    """
    settings = settings_from(CompilerSettings, NAME, settings, given)
    check_seed(seed)
    if settings.shards is not None and settings.layout != "rectangular":
        what = "every layer of its table is one" if settings.layout == "uniform" else "every expert is one"
        raise BadInput(f"shards is for layout rectangular; in layout {settings.layout} {what}: omit it")
    if tokenizer not in (None, "bytes", "bpe") and not isinstance(tokenizer, Path):
        raise BadInput(f"tokenizer is {tokenizer!r}; expected bytes or bpe, or the Path of a tokenizer.json")
    if vocab is not None and tokenizer != "bpe":
        raise BadInput(f"vocab is {vocab}, which is for the tokenizer bpe; expected none, or tokenizer bpe")
    shards = settings.layout == "rectangular" and settings.shards != 1 and settings.refuse is None
    how = {"shards": shards, "kept": keep is not None}
    _check_memory(_size_of_texts(questions), tokenizer, **how)
    read = read_questions(questions, narrow=True)
    if isinstance(read, Facts):
        _check_memory(read.asked, tokenizer, **how)
    chosen = _tokenizer(read, tokenizer, VOCAB if vocab is None else vocab)
    contexts = _contexts(read, chosen, window, settings, report)
    del read  # what was made of it is enough
    check_ids(contexts)
    files = {} if chosen is None else chosen.files(begins=settings.layout != "rectangular")
    if settings.layout == "rectangular":
        return compile_rectangular(
            contexts, settings, seed=seed, files=files, report=report, executor=executor, keep=keep
        )
    from byheart.compiler.layouts import STOCK
    from byheart.compiler.stock.attempt import compile_stock

    return compile_stock(STOCK[settings.layout](), contexts, settings, seed=seed, files=files, report=report)


def _contexts(
    read: Questions | Facts | Texts,
    tokenizer: Tokenizer | None,
    window: int | None,
    settings: CompilerSettings,
    report: Report | None,
) -> Contexts:
    """What is asked; whole prompts, if others are to be refused."""
    if settings.refuse is None:
        return as_contexts(read, tokenizer=tokenizer, window=window, report=report)
    if not isinstance(read, Facts):
        raise BadInput("refuse is for facts, each with a prompt of its own; expected --facts FILE, or pairs")
    if settings.layout != "rectangular":
        raise BadInput(f"refuse does not go with layout {settings.layout}; expected layout rectangular")
    found = as_contexts(read, tokenizer=tokenizer, window=MAX_WINDOW if window is None else window)
    return whole(found, window)


def check_ids(contexts: Contexts) -> None:
    """BadInput if there are more tokens, or labels, than a compiled network has rows for."""
    if max(contexts.vocab, contexts.label_count) > MOST_IDS:
        sizes = f"{contexts.vocab:,} tokens and {contexts.label_count:,} labels"
        raise BadInput(f"there are {sizes}; expected at most {MOST_IDS:,}: each has a row in the network and its files")


def _tokenizer(
    read: Questions | Facts | Texts, name: TokenizerName | Path | None, vocab: int
) -> Bytes | BytePairs | LoadedTokenizer | None:
    """Of texts, the tokenizer that was asked for; what has its tokens already needs none."""
    if isinstance(read, Questions) or (isinstance(read, Facts) and read.are_ids):
        if name is not None:
            what = "these facts are token ids already" if isinstance(read, Facts) else "a task has its tokens already"
            raise BadInput(f"tokenizer is {name}, which is for texts; {what}")
        return None
    if isinstance(name, Path):
        return load_tokenizer(name)
    return BytePairs.train(tuple(_texts(read)), vocab) if name == "bpe" else Bytes()


def _texts(read: Facts | Texts) -> Iterator[bytes]:
    if not isinstance(read, Facts):
        yield from read.values()
        return
    for fact in read:
        yield from (piece for piece in (fact.prompt, fact.completion) if isinstance(piece, bytes))


def _size_of_texts(questions: QuestionsLike) -> int:
    """Bytes of texts in files; what a task's file takes is seen when it is read."""
    given = questions if isinstance(questions, list | tuple) else [questions]
    task = isinstance(questions, Path) and questions.suffix in TASK_READERS
    paths = [] if task else [path for path in given if isinstance(path, Path)]
    return sum(path.stat().st_size for path in list_files(paths) if path.is_file())


def _check_memory(size: int, tokenizer: TokenizerName | Path | None, **how: bool) -> None:
    """Refuse what cannot fit; with byte pairs, or others' tokens, there are about a third as many."""
    tokens = size // (1 if tokenizer in (None, "bytes") else 3)
    check_room(ASKED * tokens, f"what is asked of {size / 2**20:,.0f} MiB of text")
    needed = memory_for(tokens, **how)
    there = int(memory.USABLE_SHARE * memory.available())
    if needed > there:
        gib = 2**30
        # One table of less text takes more than shards do.
        least = (ONE_TABLE >> 20) + 1 if how["shards"] and size > ONE_TABLE else 0
        fits = bisect_right(range(size >> 20), there, lo=least, key=lambda mib: memory_for(mib << 20, **how)) - 1
        raise BadInput(
            f"{size / 2**20:,.0f} MiB of text would take about {needed / gib:,.0f} GiB of memory to compile; there are "
            f"{there / gib:,.1f} GiB for it, enough for about {fits:,} MiB: split the text into several models"
        )
