"""The closed form of a network's folder: the files and keys that Byheart writes for this network, and no others.

Libraries read more of a folder than Byheart does, and prefer files and keys that Byheart never writes: other weights
that config.json names, adapters, another tokenizer. So a certificate is about a folder only if all of it follows from
the network. :func:`check_closed` derives every file again and compares it, key by key for JSON.

Names and keys that are allowed although Byheart does not write them, or may be missing although it does, are listed
here, each with the reason. What transformers reads was looked up in version 5.23.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

from byheart.errors import BadInput
from byheart.files.tensors import read_formats, read_metadata
from byheart.files.untrusted import MAX_JSON_BYTES, digest, parse_object, read_bytes, read_json
from byheart.networks.folders import CONFIG, GENERATION, GRID, MODELING, TASK, TOKENIZER, name_in
from byheart.networks.network import Network
from byheart.networks.weight_files import INDEX, weight_files

HARMLESS = {
    "README.md": "for people",
    "LICENSE": "for people",
    "certificate.json": "only Byheart reads it",
    TASK: "only Byheart reads it, and only if a user names it",
    f"{GRID}.npz": "only Byheart reads it: the task of an approximation's grid",
    ".git": "only git reads it",
    ".gitattributes": "only git reads it",
    ".gitignore": "only git reads it",
    ".cache": "only huggingface_hub reads it: when each file was downloaded",
}
"""Files and folders that change nothing, each with the reason."""
BESIDE_GPT2 = {
    *(GENERATION, *TOKENIZER, "vocab.json", "merges.txt", "special_tokens_map.json", "added_tokens.json"),
}
"""Files of a GPT-2 from elsewhere. It is asked token ids, which none of them changes."""
WIDER = {"F16": ("float16", "float32", "float64"), "F32": ("float32", "float64"), "F64": ("float64",)}
"""Formats of a GPT-2's weights, and the formats in which transformers may be asked to run them: it rounds none."""
OPTIONAL_FILES = {GENERATION, MODELING}
"""Files that Byheart 0.1.0 did not write. transformers takes the settings from config.json, or asks for the code."""
OPTIONAL: dict[str, set[str]] = {
    CONFIG: {"auto_map"},
    TOKENIZER[1]: {"pad_token", "padding_side"},
}
"""Keys that Byheart 0.1.0 did not write. Without them transformers pads otherwise, or asks for Byheart's classes."""
ASKED_FOR = {"dtype": "float32", "attn_implementation": "eager"}
"""Settings of stock models that are judged, and that transformers takes only if config.json asks for them."""
EARLIER_CODE = {
    "ece625d5344100d41a1039147fe81d9830aa69d38e444835561228d0ecc4f482": "after 0.1.0, before 0.2.0",
}
"""SHA-256 of the code that earlier versions of Byheart wrote into folders of float Transformers, and the versions."""


def check_closed(folder: Path, network: Network, tokenizer: Mapping[str, bytes] | None = None) -> None:
    """Raise BadInput unless ``folder`` holds what Byheart writes for ``network``, and nothing else.

    ``tokenizer`` are the files that Byheart writes for the tokenizer; None if there must be none.
    """
    config = read_json(folder / CONFIG)
    written = {**network.side_files(), **(tokenizer or {})}
    is_gpt2, weights = name_in(config) == "gpt2", weight_files(folder)
    for path in sorted(folder.iterdir()):
        is_known = path.name in {CONFIG, *HARMLESS, *written} or (is_gpt2 and path.name in BESIDE_GPT2)
        if not is_known and path not in weights and path.name != GRID and not _is_draft(path):
            expected = "which Byheart does not write and other programs may read; remove it"
            raise BadInput(f"{folder}: holds {path.name!r}, {expected}")
    if is_gpt2:
        _check_formats(folder, config, weights)
    else:
        for key, value in ASKED_FOR.items() if network.kind == "stock" else ():
            if config.get(key) != value:
                expected = f"expected {value!r}, or transformers would run it otherwise than it is judged"
                raise BadInput(f"{folder / CONFIG}: {key} is {shortened(config.get(key))}; {expected}")
        _check_object(f"{folder / CONFIG}", config, {**network.as_config(), "about": config.get("about")}, CONFIG)
        _check_metadata(weights, network)
    for name, content in written.items():
        if not (folder / name).exists():
            if name not in OPTIONAL_FILES:
                raise BadInput(f"{folder / name}: no such file; the folder is incomplete")
        elif name == MODELING:
            check_code(folder / name, content, EARLIER_CODE)
        else:
            found = parse_object(bytes(read_bytes(folder / name, max_bytes=MAX_JSON_BYTES)))
            _check_object(f"{folder / name}", found, parse_object(content), name)


def hashes(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of a network's folder that is not listed as harmless, by name."""
    return {path.name: digest(path) for path in _files(folder) if path.parent == folder}


@contextmanager
def unchanged(folder: Path) -> Iterator[None]:
    """Raise BadInput if a file of a folder was written to, replaced, added or removed when the block ends.

    So what is read in the block, by several parties and at different times, is one and the same. Two things go unseen,
    and need another process that may write there: bytes that change where a file is mapped into memory, and a folder
    that another one stands in for meanwhile.
    """
    before = _states(folder)
    yield
    if _states(folder) != before:
        raise BadInput(f"{folder}: was changed while it was checked, and no certificate is written; certify it again")


def _states(folder: Path) -> list[tuple[Path, *tuple[int, ...]]]:
    """Return inodes, sizes and times of files; nobody can set the time at which a file's status was changed."""
    states = [(path, path.stat()) for path in _files(folder)]
    return [(path, s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for path, s in states]


def _files(folder: Path) -> list[Path]:
    """Return the files of a folder and of folders in it, without links to folders, that are not listed as harmless."""
    named = [path for path in sorted(folder.glob("*")) if path.name not in HARMLESS and not _is_draft(path)]
    inner = [below for path in named if not path.is_symlink() for below in sorted(path.rglob("*"))]
    return [path for path in (*named, *inner) if path.is_file()]


def _is_draft(path: Path) -> bool:
    """Tell whether a file belongs to a process that writes just now."""
    return path.name.startswith(".") and path.name.endswith(".byheart")


def _check_object(where: str, found: Mapping[str, Any], expected: Mapping[str, Any], name: str) -> None:
    """Raise BadInput unless a JSON object is the expected one."""
    if unknown := sorted(found.keys() - expected.keys()):
        raise BadInput(f"{where}: has {unknown[0]!r}, which Byheart does not write for this network; remove it")
    if missing := sorted(expected.keys() - found.keys() - OPTIONAL.get(name, set())):
        raise BadInput(f"{where}: lacks {missing[0]!r}; expected {missing[0]} = {shortened(expected[missing[0]])}")
    for key, value in found.items():
        if canonical(value) != canonical(expected[key]):
            raise BadInput(f"{where}: {key} is {shortened(value)}; expected {shortened(expected[key])}")


def canonical(value: Any) -> str:
    """Return JSON text that is equal for equal values only; True is not 1, and 1 is not 1.0."""
    return json.dumps(value, sort_keys=True)


def _check_formats(folder: Path, config: Mapping[str, Any], weights: list[Path]) -> None:
    """Raise BadInput unless transformers runs a GPT-2 with the numbers in its files, without rounding any."""
    formats = {kind for path in weights if path.name != INDEX for kind in read_formats(path).values()} & WIDER.keys()
    if len(formats) != 1:
        expected = "expected one, or transformers would round to that of the first tensor"
        raise BadInput(f"{folder}: its weights have the formats {', '.join(sorted(formats))}; {expected}")
    metadata = read_json(folder / INDEX).get("metadata") if folder / INDEX in weights else None
    for settings in (config, metadata if isinstance(metadata, dict) else {}):
        for name in ("dtype", "torch_dtype"):
            if settings.get(name) not in (None, *(allowed := WIDER[next(iter(formats))])):
                expected = f"expected {' or '.join(allowed)}, or transformers would round the weights"
                raise BadInput(f"{folder}: {name} is {shortened(settings[name])}; {expected}")


def _check_metadata(weights: list[Path], network: Network) -> None:
    """Raise BadInput unless the files of weights say of themselves what Byheart writes."""
    for path in weights:
        if path.name == INDEX:
            index = read_json(path)
            if index.keys() != {"metadata", "weight_map"} or index["metadata"].keys() != {"total_size"}:
                raise BadInput(f"{path}: has other keys than metadata.total_size and weight_map; remove them")
        elif read_metadata(path) != network.metadata:
            raise BadInput(f"{path}: metadata are {shortened(read_metadata(path))}; expected {network.metadata}")


def check_code(path: Path, content: bytes, earlier: Mapping[str, str]) -> None:
    """Raise BadInput unless the code in a folder is Byheart's: ``content``, or of an ``earlier`` version by SHA-256."""
    found = bytes(read_bytes(path, max_bytes=MAX_JSON_BYTES))
    if found != content and hashlib.sha256(found).hexdigest() not in earlier:
        problem = "is not the code that this version of Byheart writes, nor that of an earlier one"
        raise BadInput(f"{path}: {problem}; expected what byheart.networks.save(byheart.load(folder), new) writes")
