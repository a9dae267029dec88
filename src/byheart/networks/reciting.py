"""Let a network recite: a text from its beginning, or what follows a prompt."""

from pathlib import Path

from byheart.errors import BadInput, did_you_mean
from byheart.networks.about import TextNote, end_of, facts_of, refuse_of, texts_of
from byheart.networks.kinds import generate, load
from byheart.networks.network import HasNetwork, Network
from byheart.networks.passages import find_passage, is_beginning, recites_texts
from byheart.tasks.tokenizers import Tokenizer, from_files


def recite(
    network: HasNetwork | Network | Path | str,
    prompt: str | bytes | None = None,
    *,
    text: str | None = None,
    tokens: int | None = None,
) -> str | None:
    """Return what a compiled network says, one token after the other, each the likeliest.

    Without a ``prompt``: a text from its beginning, the first, or the one called ``text``. After the prompt of a fact:
    its completion. After a part of a text: that part, and the text from there to its end. None if the network answers
    *unknown* (``refuse=``).

    It ends where the text or the completion does, or after ``tokens`` tokens. BadInput is raised if no text has the
    prompt, or if no end comes within the length of the longest completion: the prompt was never memorized. Bytes that
    are no UTF-8 become surrogates, as in ``os.fsdecode``.

    >>> import byheart
    >>> recite(byheart.compile("to be or not to be"), tokens=7)
    'to be or'
    >>> recite(byheart.compile([("capital of France", "Paris")]), "capital of France")
    'Paris'
    """
    network = load(network) if isinstance(network, Path | str) else getattr(network, "network", network)
    if not isinstance(network, Network):
        raise BadInput(f"got {type(network).__name__}; expected a network, a result of byheart.compile, or a folder")
    tokenizer, end, texts, facts = from_files(network.files), end_of(network), texts_of(network), facts_of(network)
    if tokenizer is None or (end is None and tokens is None):
        raise BadInput(f"{network.title} answers tasks; expected a network that was compiled from texts or facts")
    beginning = _beginning(texts, text) if prompt is None else _encoded(tokenizer, prompt)
    if prompt is not None and end is not None and recites_texts(network) and not is_beginning(network, beginning):
        piece = prompt if isinstance(prompt, bytes) else prompt.encode(errors="surrogateescape")
        passage = find_passage(network, piece, tokenizer.decode, end=end, tokens=tokens)
        if passage is None:
            raise BadInput("no text has this prompt; expected a piece of one")
        return passage.content.decode(errors="surrogateescape")
    longest = max((*(one["tokens"] for one in texts), facts["longest"] if facts else 0), default=0)
    said = list(generate(network, beginning, tokens=1 + longest if tokens is None else tokens, end=end))
    refusal = refuse_of(network)
    if refusal is not None and refusal.token in said:
        return None
    if tokens is None and said[-1:] != [end]:
        raise BadInput(f"no end after {longest:,} tokens, the longest that was memorized; expected a memorized prompt")
    shown = said if facts is not None else [*beginning, *said]
    return tokenizer.decode(shown).decode(errors="surrogateescape")


def _encoded(tokenizer: Tokenizer, prompt: str | bytes) -> list[int]:
    data = prompt if isinstance(prompt, bytes) else prompt.encode(errors="surrogateescape")
    ids: list[int] = tokenizer.encode(data).tolist()
    if not ids:
        raise BadInput("prompt is empty; expected at least one token")
    return ids


def _beginning(texts: list[TextNote], name: str | None) -> list[int]:
    """Return the prompt of the text with this name, or of the first."""
    prompts: dict[str, list[int]] = {text["name"]: text["prompt"] for text in texts}
    if not prompts:
        raise BadInput("no prompt is given, and the network holds no text; expected the prompt of a fact")
    if name is not None and name not in prompts:
        raise BadInput(f"no text is called {name!r}; {did_you_mean(name, prompts)}")
    return next(iter(prompts.values())) if name is None else prompts[name]
