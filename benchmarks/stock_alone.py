"""Recite stock models by transformers alone, in a new virtual environment without Byheart.

    python benchmarks/stock_alone.py
    python benchmarks/stock_alone.py library --layouts experts

Every text is generated from its prompt to its end, greedily and with a cache, and compared with the file letter by
letter. Exits with 1 if a letter is wrong. The licence takes minutes, the library half an hour. Needs the extra "hf".
With --tiny: eight texts as experts.
"""

import importlib.util
import json
import subprocess
import sys
import venv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.table import Table
from tables import OUT, parser, table

from byheart.compiler import compile

ROOT = Path(__file__).parents[1]
LAYOUTS = ("uniform", "experts")
WAYS: tuple[dict[str, Any], ...] = ({}, {"num_beams": 3}, {"do_sample": True, "temperature": 1.0}, {"use_cache": False})
STRANGER = """
import hashlib, importlib.util, json, sys, time, warnings
assert importlib.util.find_spec("byheart") is None, "Byheart is installed here: install it with --editable"
warnings.filterwarnings("ignore", message="Initializing zero-element tensors")
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

folder, ways, whole = json.load(sys.stdin)
torch.set_num_threads(1)
model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
first, texts = model.config.bos_token_id, model.config.about["texts"]

def padded(rows):
    return tokenizer.pad({"input_ids": [[first, *row] for row in rows]}, return_tensors="pt")

@torch.inference_mode()
def digests(rows):
    batch = padded(rows)
    logits = model(**batch).logits
    return [hashlib.sha256(row[mask > 0].numpy().tobytes()).hexdigest()
            for row, mask in zip(logits, batch.attention_mask)]

found = {"class": type(model).__module__ + "." + type(model).__name__, "ways": []}
for way in ways:
    torch.manual_seed(0)
    began = time.perf_counter()
    rows = model.generate(**padded([text["prompt"] for text in texts]), max_new_tokens=1 + max(
        text["tokens"] for text in texts), **way)
    seconds = time.perf_counter() - began
    said = tokenizer.batch_decode(rows, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    found["ways"].append({"said": said, "seconds": seconds, "steps": rows.shape[1]})
rows = [tokenizer(text, add_special_tokens=False).input_ids for text in whole]
found["digests"] = {}
for threads in (1, 2) if whole else ():
    torch.set_num_threads(threads)
    found["digests"][threads] = [digests(rows), digests(rows[::-1])[::-1], [digests([row])[0] for row in rows]]
print(json.dumps(found))
"""
"""Program that runs in the new environment.

It generates from the prompts in config.json, padded on the left, and digests the logits of whole texts, in batches and
one by one.
"""


def environment(folder: Path) -> Path:
    """Make a virtual environment with transformers and what is installed beside it. Return its Python."""
    beside = Path(str(importlib.util.find_spec("transformers").origin)).parents[1]  # type: ignore[union-attr]
    venv.create(folder, with_pip=False)
    place = next((folder / "lib").glob("python*")) if sys.platform != "win32" else folder / "Lib"
    (place / "site-packages" / "beside.pth").write_text(f"{beside}\n")
    return folder / ("bin/python" if sys.platform != "win32" else "Scripts/python.exe")


def heard(python: Path, folder: Path, ways: Sequence[Mapping[str, Any]], whole: Sequence[str] = ()) -> Any:
    """Run the program in the new environment and return its results."""
    given = json.dumps([str(folder), ways, whole])
    done = subprocess.run([python, "-I", "-c", STRANGER], input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def recited(
    title: str, texts: Mapping[str, str], layouts: Sequence[str], ways: Any, *, bits: bool = False, **settings: Any
) -> int:
    """Compile the texts, recite them at once, and print. Return the number of texts and digests that differ."""
    rows = table(title, "layout", "class", "parameters", "tokens", "generation", "whole", "tokens/s", "seconds")
    same = table("Logits of these texts", "layout", "threads", "batch of eight", "other order", "one by one")
    wrong = 0
    with TemporaryDirectory() as place:
        python = environment(Path(place) / "venv")
        for layout in layouts:
            built = compile(dict(texts), layout=layout, **settings)
            built.save(Path(place) / layout)
            found = heard(python, Path(place) / layout, ways, list(texts.values()) if bits else ())
            tokens = sum(text["tokens"] for text in built.network.about["texts"])
            for way, told in zip(ways, found["ways"], strict=True):
                whole = sum(said == text for said, text in zip(told["said"], texts.values(), strict=True))
                wrong += len(texts) - whole
                how = ", ".join(f"{name}={value}" for name, value in way.items()) or "greedy, with a cache"
                numbers = (f"{built.account.dense:,}", f"{tokens:,}", how, f"{whole} of {len(texts)}")
                speed = (f"{tokens / told['seconds']:,.0f}", f"{told['seconds']:,.0f}")
                rows.add_row(layout, found["class"].rpartition(".")[2], *numbers, *speed)
            wrong += _compare(same, layout, found["digests"])
    OUT.print(rows, "")
    if bits:
        OUT.print(same, "")
    return wrong


def _compare(rows: Table, layout: str, runs: Mapping[str, Sequence[Any]]) -> int:
    """Add one row per number of threads. Return the number of digests that differ from the first batch's."""
    wrong = 0
    for threads, run in runs.items():
        equal = [digests == runs["1"][0] for digests in run]
        rows.add_row(layout, threads, *("the same bits" if same else "DIFFERENT" for same in equal))
        wrong += equal.count(False)
    return wrong


def eight(tiny: bool, layouts: Sequence[str]) -> int:
    """Recite eight pieces of the licence at once, in four ways, and compare the bits of their logits."""
    licence, length = (ROOT / "LICENSE").read_text(), 12 if tiny else 150
    texts = {f"piece {i}": licence[1200 * i : 1200 * i + length + length // 7 * i] for i in range(8)}
    ways = WAYS[: 1 if tiny else None]
    return recited("Eight texts at once, by transformers alone", texts, layouts, ways, bits=True)


def licence(tiny: bool, layouts: Sequence[str]) -> int:
    """Recite the whole LICENSE."""
    text = (ROOT / "LICENSE").read_text()
    return recited("The licence, by transformers alone", {"LICENSE": text[: 60 if tiny else None]}, layouts, WAYS[:1])


def library(tiny: bool, layouts: Sequence[str]) -> int:
    """Recite Python's own argparse and inspect from one network, as byte pairs, both at once."""
    paths = [Path(str(importlib.util.find_spec(name).origin)) for name in ("argparse", "inspect")]  # type: ignore[union-attr]
    texts = {path.name: path.read_text(encoding="utf-8")[: 60 if tiny else None] for path in paths}
    return recited("argparse.py and inspect.py, by transformers alone", texts, layouts, WAYS[:1], tokenizer="bpe")


SECTIONS: tuple[Callable[[bool, Sequence[str]], int], ...] = (eight, licence, library)


def main() -> int:
    """Run all sections, or the named ones. Return 1 if anything differs."""
    arguments = parser(__doc__, SECTIONS)
    arguments.add_argument(
        "--layouts", nargs="+", choices=LAYOUTS, default=LAYOUTS, help="layouts to compile (default: both)"
    )
    given = arguments.parse_args()
    names = given.sections or (["eight"] if given.tiny else [section.__name__ for section in SECTIONS])
    if given.tiny:
        given.layouts = given.layouts[-1:]
    chosen = [section for section in SECTIONS if section.__name__ in names]
    return 1 if sum(section(given.tiny, given.layouts) for section in chosen) else 0


if __name__ == "__main__":
    sys.exit(main())
