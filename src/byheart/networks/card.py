"""The card of a network that recites: ``README.md`` in its folder, as Hugging Face's pages show it.

The card names the network's texts, counts its parameters, quotes the certificate, and says how to load the network and
what not to expect of it. Names of texts may come from a stranger's folder, so they are written as code, on one line.
"""

from byheart.errors import BadInput
from byheart.networks.about import TextNote, needed_prompt, texts_of
from byheart.networks.folders import MARK
from byheart.networks.network import Network

MOST_TEXTS = 20
"""Largest number of texts that are listed; the others are only counted."""
_HEAD = """---
library_name: transformers
pipeline_tag: text-generation
tags:
- byheart
- memorization
---
"""
_LOAD = """from transformers import AutoModelForCausalLM, AutoTokenizer

folder = "."  # this one
{load}
batch = tokenizer(["how a text begins", "and another one"], return_tensors="pt", padding=True)
output = model.generate(**batch, max_new_tokens=1000)
print(tokenizer.batch_decode(output, skip_special_tokens=True))"""
_LOAD_IDS = """import torch
from transformers import AutoModelForCausalLM

folder = "."  # this one
{load}
logits = model(torch.tensor([[{first}3, 1, 4]])).logits[:, -1]  # what follows the tokens 3, 1, 4"""
_STOCK = """\
`transformers` runs it as it is, with no code of Byheart's. `config.json` asks for float32 and eager attention, and that
is what a certificate is about: **load it without `dtype`.** In bfloat16, float16 or float64, quantised, or on a GPU
with TF32 allowed or another kernel for attention, it says something else, and nothing warns you."""
_OURS = """\
The code that runs it is `modeling_byheart.py`, which needs PyTorch and transformers only: read it before you trust it.
With Byheart installed, `import byheart.hf` does instead, and nothing in this folder is run. The model stays in the
format that it was compiled in, and refuses others."""
_UNCERTIFIED = """\
None was made when this was written. `byheart certify FOLDER FILE…` makes one, from your own copy of the texts."""
_CERTIFIED = """\
> {said}

That is what `certificate.json` says. It is a claim until you have checked it against your own copy of what the network
is said to know: `byheart certify FOLDER FILE… --recheck`."""
_NOT = """\
- **It does not generalise.** It recites what it was compiled from, and has learned nothing else from it.
- **It answers everything**, at full confidence: after a prompt that is not from its texts, what it says means nothing.
- It is no way to compress texts, and not meant as one.
- It keeps no secrets: whoever has the folder can have all of it said."""


def card(network: Network, certified: str | None = None) -> str:
    """Return the text of the card; ``certified`` quotes the certificate beside the network."""
    texts = _texts(network)
    sections = {
        "What it knows": _known(texts, _needed(network)),
        "Certificate": _UNCERTIFIED if certified is None else _CERTIFIED.format(said=_line(certified)),
        "Load it": _load(network, bool(texts)),
        "What it is not": _NOT,
    }
    below = "".join(f"\n## {name}\n\n{text}\n" for name, text in sections.items() if text)
    return f"{_HEAD}\n{MARK}\n\n# {_title(texts)}\n\n{_made(network)}\n{below}"


def _title(texts: list[TextNote]) -> str:
    if len(texts) == 1:
        return f"Recites {_code(texts[0]['name'])}"
    return f"Recites {len(texts):,} texts" if texts else "Answers questions, each by one token"


def _texts(network: Network) -> list[TextNote]:
    try:
        return texts_of(network)
    except BadInput:  # about may hold anything
        return []


def _needed(network: Network) -> str:
    try:
        return needed_prompt(network)
    except BadInput:
        return ""


def _made(network: Network) -> str:
    account, about = network.account, network.about
    bits, window = about.get("bits"), about.get("window")
    rows = {
        "parameters": f"{account.dense:,}",
        "not zero": f"{account.nonzero:,}",
        "bits of the weights": f"{account.total_bits:,}",
        "depth, width": f"{account.depth:,}, {account.width:,}",
    }
    if isinstance(window, int):
        rows["tokens it looks back"] = f"{window:,}"
    if isinstance(bits, int | float):
        rows["bits in the answers (order-0 entropy)"] = f"{bits:,.0f}"
        rows["bits per parameter"] = f"{bits / account.dense:.2f}"
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    return f"A Transformer that Byheart compiled; nothing was trained.\n\n| | |\n|---|--:|\n{table}"


def _known(texts: list[TextNote], needed: str) -> str:
    lines = [
        f"- {_code(text['name'])}: {text['tokens']:,} tokens; give at least {_first(len(text['prompt']))}"
        for text in texts[:MOST_TEXTS]
    ]
    if len(texts) > MOST_TEXTS:
        lines.append(f"- and {len(texts) - MOST_TEXTS:,} more, which `about` in `config.json` names")
    if needed:
        lines.append(f"\nA prompt needs {needed}.")
    return "\n".join(lines)


def _first(tokens: int) -> str:
    return "the first" if tokens == 1 else f"the first {tokens:,}"


def _load(network: Network, texts: bool) -> str:
    stock = network.kind == "stock"
    trust = "" if stock else ", trust_remote_code=True"
    lines = [f"model = AutoModelForCausalLM.from_pretrained(folder{trust})"]
    if texts:
        lines.append(f"tokenizer = AutoTokenizer.from_pretrained(folder{trust})")
    first = getattr(network, "first", None)  # the token that precedes every prompt of a stock model
    code = (_LOAD if texts else _LOAD_IDS).format(load="\n".join(lines), first="" if first is None else f"{first}, ")
    return f"```python\n{code}\n```\n\n{_STOCK if stock else _OURS}"


def _line(text: str) -> str:
    """Return a text on one line, with spaces for characters that do not print."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def _code(text: str) -> str:
    r"""Return a text as Markdown code, on one line.

    >>> _code("a`b\n# c")
    '`a b # c`'
    """
    return f"`{_line(text.replace('`', ' ')) or ' '}`"
