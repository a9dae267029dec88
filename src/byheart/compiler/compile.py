"""Compile a task, texts, facts or files: read them, make contexts of them, and follow recipes until one succeeds."""

import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from byheart.compiler import layouts
from byheart.compiler.layouts import (
    NAME,
    CompilerSettings,
    Layout,
    LayoutName,
    Precision,
    Refuse,
    Resources,
    Unsolvable,
)
from byheart.compiler.rectangular.recipe import ASKED, ONE_TABLE, memory_for
from byheart.compiler.rectangular.refusing import with_whole_prompts
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
MAX_IDS = 1 << 22
"""Highest number of tokens, and of labels: config.json lists the code length of every label within 64 MB."""
VOCAB = 1024
"""Default number of tokens of byte pairs."""


def compile(
    questions: QuestionsLike,
    *,
    layout: LayoutName | None = None,
    precision: Precision | None = None,
    words: int | None = None,
    refuse: Refuse = None,
    shards: int | None = None,
    settings: CompilerSettings | None = None,
    tokenizer: TokenizerName | Path | None = None,
    vocab: int | None = None,
    window: int | None = None,
    seed: int = 0,
    executor: Workplace | None = None,
    keep: "Shelf | None" = None,
    report: Report | None = None,
) -> Built:
    """Compile a float Transformer that recites texts from their first tokens on, knows facts, or answers a task.

    ``questions``: a task; facts, or pairs (prompt, completion); a text, or several by name; paths.
    ``tokenizer`` is for texts: "bytes" (the default), "bpe", or the path of a ``tokenizer.json``. ``vocab`` is the
    highest number of tokens of "bpe" (default: 1024).
    Settings are given one by one (``layout="uniform"``) or all together.
    ``window`` None: the smallest power of two at which no context asks for two answers. Files that do not fit into the
    machine's memory or disk are refused before they are read.
    ``executor`` says where a network of several shards is solved. ``keep`` is a shelf for solved shards: a compile that
    was killed finds them there. Neither changes the network.

    >>> built = compile("To be, or not to be, that is the question.")
    >>> built.network.window, built.questions.size.examples
    (8, 42)
    """
    given = {"layout": layout, "precision": precision, "words": words, "refuse": refuse, "shards": shards}
    options = {name: value for name, value in given.items() if value is not None}
    settings = settings_from(CompilerSettings, NAME, settings, options)
    _check_options(settings, tokenizer, vocab, seed)
    can_shard = settings.layout == "rectangular" and settings.shards != 1 and settings.refuse is None
    storage = {"shards": can_shard, "kept": keep is not None}
    contexts, files = _read(questions, settings, tokenizer, vocab, window, storage, report)
    resources = Resources(files, report, executor, keep)
    return compile_contexts(contexts, settings, seed=seed, resources=resources)


def compile_contexts(contexts: Contexts, settings: CompilerSettings, *, seed: int, resources: Resources) -> Built:
    """Follow one recipe after the other until every question has its answer."""
    began = time.perf_counter()
    layout = _layout(settings.layout)
    recipe = layout.first_recipe(contexts, settings, seed)
    for _ in range(layouts.ATTEMPTS):
        try:
            network, choices = layout.attempt(recipe, contexts, resources)
        except Unsolvable as failure:
            recipe = layout.next_recipe(recipe, contexts, failure)
        else:
            seconds = time.perf_counter() - began
            return Built(NAME, recipe.settings, network, seconds, seed, contexts, choices)
    raise BadInput(f"no table was found in {layouts.ATTEMPTS} attempts; another --seed may do")


def _layout(name: LayoutName) -> Layout[Any]:
    if name == "rectangular":
        from byheart.compiler.rectangular.attempt import RECTANGULAR

        return RECTANGULAR
    from byheart.compiler.stock.attempt import STOCK

    return STOCK


def _check_options(
    settings: CompilerSettings, tokenizer: TokenizerName | Path | None, vocab: int | None, seed: int
) -> None:
    """Raise BadInput if options do not go together."""
    check_seed(seed)
    if settings.shards is not None and settings.layout != "rectangular":
        shards = "every layer of its table is one" if settings.layout == "uniform" else "every expert is one"
        raise BadInput(f"shards is for layout rectangular; in layout {settings.layout} {shards}: omit it")
    if tokenizer not in (None, "bytes", "bpe") and not isinstance(tokenizer, Path):
        raise BadInput(f"tokenizer is {tokenizer!r}; expected bytes or bpe, or the Path of a tokenizer.json")
    if vocab is not None and tokenizer != "bpe":
        raise BadInput(f"vocab is {vocab}, which is for the tokenizer bpe; expected none, or tokenizer bpe")


def _read(
    questions: QuestionsLike,
    settings: CompilerSettings,
    tokenizer: TokenizerName | Path | None,
    vocab: int | None,
    window: int | None,
    storage: Mapping[str, bool],
    report: Report | None,
) -> tuple[Contexts, Mapping[str, bytes]]:
    """Return the contexts that the network has to know, and the files of their tokenizer."""
    _check_memory(_size_of_texts(questions), tokenizer, **storage)
    data = read_questions(questions, narrow=True)
    if isinstance(data, Facts):
        _check_memory(data.asked, tokenizer, **storage)
    chosen = _tokenizer(data, tokenizer, VOCAB if vocab is None else vocab)
    contexts = _contexts(data, chosen, window, settings, report)
    check_ids(contexts)
    return contexts, {} if chosen is None else chosen.files(begins=settings.layout != "rectangular")


def _contexts(
    data: Questions | Facts | Texts,
    tokenizer: Tokenizer | None,
    window: int | None,
    settings: CompilerSettings,
    report: Report | None,
) -> Contexts:
    """Return the contexts. If other prompts than those of facts are to be refused, the window covers whole prompts."""
    if settings.refuse is None:
        return as_contexts(data, tokenizer=tokenizer, window=window, report=report)
    if settings.layout != "rectangular":
        raise BadInput(f"refuse does not go with layout {settings.layout}; expected layout rectangular")
    if isinstance(data, Questions):
        raise BadInput("refuse is for texts and facts, and got a task; expected files, or --facts FILE")
    if not isinstance(data, Facts):
        return as_contexts(data, tokenizer=tokenizer, window=window, report=report)
    contexts = as_contexts(data, tokenizer=tokenizer, window=MAX_WINDOW if window is None else window)
    return with_whole_prompts(contexts, window)


def check_ids(contexts: Contexts) -> None:
    """Raise BadInput if there are more tokens, or labels, than a compiled network can have."""
    if max(contexts.vocab, contexts.label_count) > MAX_IDS:
        sizes = f"{contexts.vocab:,} tokens and {contexts.label_count:,} labels"
        raise BadInput(f"there are {sizes}; expected at most {MAX_IDS:,}: each has a row in the network and its files")


def _tokenizer(
    data: Questions | Facts | Texts, name: TokenizerName | Path | None, vocab: int
) -> Bytes | BytePairs | LoadedTokenizer | None:
    """Return the tokenizer for texts; None for data that consist of token ids."""
    if isinstance(data, Questions) or (isinstance(data, Facts) and data.are_ids):
        if name is not None:
            tokens = "these facts are token ids already" if isinstance(data, Facts) else "a task has its tokens already"
            raise BadInput(f"tokenizer is {name}, which is for texts; {tokens}")
        return None
    if isinstance(name, Path):
        return load_tokenizer(name)
    return BytePairs.train(tuple(_texts(data)), vocab) if name == "bpe" else Bytes()


def _texts(data: Facts | Texts) -> Iterator[bytes]:
    if not isinstance(data, Facts):
        yield from data.values()
        return
    for fact in data:
        yield from (piece for piece in (fact.prompt, fact.completion) if isinstance(piece, bytes))


def _size_of_texts(questions: QuestionsLike) -> int:
    """Return the bytes of texts in files; 0 for a task's file, which is checked when it is read."""
    sources = questions if isinstance(questions, list | tuple) else [questions]
    is_task = isinstance(questions, Path) and questions.suffix in TASK_READERS
    paths = [] if is_task else [path for path in sources if isinstance(path, Path)]
    return sum(path.stat().st_size for path in list_files(paths) if path.is_file())


def _check_memory(size: int, tokenizer: TokenizerName | Path | None, **storage: bool) -> None:
    """Raise BadInput for texts of ``size`` bytes that cannot fit.

    Byte pairs, and tokenizers from a file, are assumed to make one token of three bytes.
    """
    tokens = size // (1 if tokenizer in (None, "bytes") else 3)
    check_room(ASKED * tokens, f"what is asked of {size / 2**20:,.0f} MiB of text")
    needed = memory_for(tokens, **storage)
    usable = int(memory.USABLE_SHARE * memory.available())
    if needed > usable:
        gib = 2**30
        # One table of less text may take more than shards do: look for texts that fit above the size of one table.
        least = (ONE_TABLE >> 20) + 1 if storage["shards"] and size > ONE_TABLE else 0
        fits = bisect_right(range(size >> 20), usable, lo=least, key=lambda mib: memory_for(mib << 20, **storage)) - 1
        raise BadInput(
            f"{size / 2**20:,.0f} MiB of text would take about {needed / gib:,.0f} GiB of memory to compile; there are "
            f"{usable / gib:,.1f} GiB for it, enough for about {fits:,} MiB: split the text into several models"
        )
