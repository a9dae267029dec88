"""How a network's folder is changed: the spelling of what it says, every key, every file, every tensor.

Half of the changes are harmless, so that many folders are certified although their files are not those that were
written: what is affirmed about them is compared with what transformers makes of them.
"""

import hashlib
import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tests.fuzz.mutate import DAMAGED, RAW, VALUES, Files, Rng, change, place

Way = Callable[[Files, str, Rng], None]
HARMLESS = ("README.md", "LICENSE", "certificate.json", ".gitattributes", ".gitignore", ".git/HEAD", ".cache/x/y.json")
OPTIONAL = ("generation_config.json", "modeling_byheart.py")
OPTIONAL_KEYS = {"config.json": ("auto_map",), "tokenizer_config.json": ("pad_token", "padding_side")}
KEYS: dict[str, dict[str, Any]] = {
    "config.json": {
        "transformers_weights": "other.safetensors",
        "attn_implementation": "sdpa",
        "_attn_implementation": "flex_attention",
        "torch_dtype": "bfloat16",
        "dtype": "float16",
        "bos_token_id": 101,
        "eos_token_id": 101,
        "pad_token_id": 101,
        "decoder_start_token_id": 7,
        "tokenizer_class": "GPT2Tokenizer",
        "auto_map": {"AutoModelForCausalLM": "other.Model", "AutoTokenizer": ["other.T", None]},
        "quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True},
        "suppress_tokens": [101, 32],
        "begin_suppress_tokens": [101],
        "bad_words_ids": [[101]],
        "forced_bos_token_id": 101,
        "forced_eos_token_id": 101,
        "sequence_bias": [[[101], 9.0]],
        "rope_scaling": {"rope_type": "linear", "factor": 2.0},
        "rope_theta": 5.0,
        "tie_word_embeddings": True,
        "num_labels": 3,
        "pad": 3,
        "do_sample": True,
        "num_beams": 3,
        "temperature": 9.0,
        "repetition_penalty": 5.0,
        "no_repeat_ngram_size": 1,
        "max_length": 3,
        "min_length": 99,
        "top_k": 1,
        "use_cache": False,
        "cache_implementation": "static",
        "is_encoder_decoder": True,
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": 258,
        "n_embd": 2,
        "text_config": {"vocab_size": 3},
        "base_model_tp_plan": {"x": "colwise"},
    },
    "tokenizer.json": {
        "truncation": {"max_length": 3, "stride": 0, "strategy": "LongestFirst", "direction": "Right"},
        "padding": {"strategy": {"Fixed": 9}, "direction": "Left", "pad_id": 32, "pad_type_id": 0, "pad_token": " "},
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "decoder": {"type": "Fuse"},
        "added_tokens": [],
    },
    "tokenizer_config.json": {
        "tokenizer_class": "LlamaTokenizer",
        "add_prefix_space": True,
        "add_bos_token": True,
        "add_eos_token": True,
        "bos_token": "e",
        "eos_token": "e",
        "unk_token": "e",
        "pad_token": "e",
        "extra_special_tokens": {"a": "e"},
        "additional_special_tokens": ["e"],
        "added_tokens_decoder": {"101": {"content": "e", "special": True}},
        "clean_up_tokenization_spaces": True,
        "split_special_tokens": False,
        "model_max_length": 3,
        "truncation_side": "left",
        "auto_map": {"AutoTokenizer": ["other.T", None]},
        "chat_template": "{{ 1 }}",
        "tokenizer_file": "other.json",
        "byheart_tokenizer": "loaded",
    },
}
KEYS["generation_config.json"] = {key: value for key, value in KEYS["config.json"].items() if key != "auto_map"}
COMPONENTS: dict[str, tuple[Any, ...]] = {
    "normalizer": (
        {"type": "Replace", "pattern": {"String": "e"}, "content": "a"},
        {"type": "Replace", "pattern": {"Regex": "(e|t)+"}, "content": ""},
        {"type": "NFKC"},
        {"type": "Prepend", "prepend": "e"},
        {"type": "Sequence", "normalizers": [{"type": "Strip", "strip_left": True, "strip_right": True}]},
    ),
    "pre_tokenizer": (
        {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Removed", "invert": False},
        {"type": "Digits", "individual_digits": True},
        {"type": "Metaspace", "replacement": "_", "prepend_scheme": "always", "split": True},
    ),
    "post_processor": (
        {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "a", "type_id": 0}}, {"Sequence": {"id": "A"}}],
        },
        {"type": "BertProcessing", "sep": ["e", 101], "cls": ["t", 116]},
    ),
    "decoder": (
        {"type": "Replace", "pattern": {"String": "e"}, "content": "a"},
        {"type": "Strip", "content": "t", "start": 1, "stop": 1},
        {"type": "ByteFallback"},
    ),
    "added_tokens": (
        [{"id": 101, "content": "e", "single_word": False, "lstrip": True, "rstrip": True, "special": True}],
        [{"id": 400, "content": "th", "single_word": False, "lstrip": False, "rstrip": False, "special": False}],
    ),
    "model": (
        {"merges": [["t", "h"]]},
        {"dropout": 0.5},
        {"unk_token": "e"},
        {"byte_fallback": True},
        {"ignore_merges": True},
        {"end_of_word_suffix": "e"},
        {"type": "WordLevel"},
        {"type": "Unigram"},
    ),
}
"""Parts of tokenizers; those of the model are put into it key by key."""
ADDED: dict[str, Any] = {
    "generation_config.json": {"do_sample": True, "temperature": 9.0, "suppress_tokens": [101]},
    "adapter_config.json": {"peft_type": "LORA", "base_model_name_or_path": "."},
    "added_tokens.json": {"e": 400},
    "special_tokens_map.json": {"eos_token": "e", "pad_token": "e"},
    "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "e"},
    "vocab.json": {"e": 1},
    "merges.txt": "t h\n",
    "tokenizer.model": "x",
    "chat_template.jinja": "{{ 1 }}",
    "chat_template.json": {"chat_template": "x"},
    "processor_config.json": {"processor_class": "X"},
    "config.5.0.json": {"model_type": "gpt2"},
    "other.py": "raise SystemExit('this must not run')",
    "modeling_byheart.py": "raise SystemExit('this must not run')",
    "custom_generate/generate.py": "def generate(model, **given): raise SystemExit('this must not run')",
    "pytorch_model.bin": "x",
    "pytorch_model.bin.index.json": {"metadata": {}, "weight_map": {}},
    "model.safetensors.index.json": {
        "metadata": {"total_size": 4},
        "weight_map": {"x": "model-00001-of-00001.safetensors"},
    },
    "kernels.json": {},
    "requirements.txt": "x",
    "original/params.json": {},
}
"""Files that a library may read, with something for it."""


def changed_folder(files: Files, folder: str, rng: Rng, others: list[Files]) -> tuple[Files, str]:
    """The files with one to five things changed in ``folder``, which has a network, and what, in words.

    ``others`` are the files of other cases, which take the place of these now and then.
    """
    files, told = dict(files), []
    rough = int((0, 0, 1, 1, 2)[rng.integers(5)])
    ways = [_ROUGH[k] for k in rng.integers(len(_ROUGH), size=rough)]
    ways += [_GENTLE[k] for k in rng.integers(len(_GENTLE), size=rng.integers(1 - min(rough, 1), 4))]
    for way in ways:
        if not _names(files, folder):  # links are all that is left
            break
        if way is _swapped:
            other = others[rng.integers(len(others))]
            files |= {f"\0{name}": data for name, data in other.items()}
        with suppress(*DAMAGED):  # it was damaged before, beyond what this way understands
            way(files, folder, rng)
        files = {name: data for name, data in files.items() if not name.startswith("\0")}
        told.append(way.__name__.strip("_"))
    if f"{folder}/plant.json" in files and rng.random() < 0.95:
        _signed(files, folder)
        told.append("signed")
    return files, f"{folder}: {', '.join(told)}"


def _names(files: Files, folder: str, *ends: str) -> list[str]:
    return sorted(
        name for name in files if name.startswith(f"{folder}/") and name.endswith(ends or ("",)) and _data(files, name)
    )


def _data(files: Files, name: str) -> bytes:
    return files[name] if isinstance(files.get(name), bytes) else b""


def _one(files: Files, folder: str, rng: Rng, *ends: str) -> str:
    """One of the files with such an end; a JSON file rather than what there is no end of."""
    names = _names(files, folder, *ends) or _names(files, folder)
    return names[rng.integers(len(names))]


def _parsed(files: Files, name: str) -> Any:
    try:
        return json.loads(_data(files, name))
    except (ValueError, RecursionError):  # it was damaged before
        return {}


def _respelled(files: Files, folder: str, rng: Rng) -> None:
    """Another order of keys, other blanks, escapes and zeros."""
    name = _one(files, folder, rng, ".json")
    spelling: dict[str, Any] = {"ensure_ascii": bool(rng.integers(2)), "indent": [None, 0, 1, 4, "\t"][rng.integers(5)]}
    text = json.dumps(_shuffled(_parsed(files, name), rng), **spelling)
    if rng.random() < 0.3:
        text = re.sub(r"(?<=[ \[])(\d+\.\d+)(?=[,\n\]}])", r"\g<1>0", text)
    files[name] = [text, f" {text}\n\n", text.replace("\n", "\r\n")][rng.integers(3)].encode()


def _shuffled(value: Any, rng: Rng) -> Any:
    if isinstance(value, dict):
        keys = list(value)
        return {keys[k]: _shuffled(value[keys[k]], rng) for k in rng.permutation(len(keys))}
    return [_shuffled(item, rng) for item in value] if isinstance(value, list) else value


def _reordered(files: Files, folder: str, rng: Rng) -> None:
    """The same tensors in another order, or the same header with other blanks."""
    name = _one(files, folder, rng, ".safetensors")
    header, data = _header(files, name)
    if not header:
        return
    entries = {key: header[key] for key in _shuffled({key: key for key in header}, rng)}
    if rng.random() < 0.6:
        parts, start = [], 0
        for key, entry in entries.items():
            if key != "__metadata__":
                begin, end = entry["data_offsets"]
                parts.append(data[begin:end])
                entries[key] = {**entry, "data_offsets": [start, start + end - begin]}
                start += end - begin
        data = b"".join(parts)
    files[name] = _tensors(entries, data, " " * int(rng.integers(9)))


def _header(files: Files, name: str) -> tuple[dict[str, Any], bytes]:
    content = _data(files, name)
    start = 8 + int.from_bytes(content[:8], "little")
    try:
        return json.loads(content[8:start]), content[start:]
    except (ValueError, RecursionError):
        return {}, b""


def _tensors(header: dict[str, Any], data: bytes, blanks: str = "") -> bytes:
    text = (json.dumps(header) + blanks).encode()
    return len(text).to_bytes(8, "little") + text + data


def _harmless(files: Files, folder: str, rng: Rng) -> None:
    name = HARMLESS[rng.integers(len(HARMLESS))]
    files[f"{folder}/{name}"] = (b"{}", b"", b"# more", rng.bytes(9))[rng.integers(4)]


def _left_out(files: Files, folder: str, rng: Rng) -> None:
    """What Byheart 0.1.0 did not write."""
    if rng.random() < 0.5:
        files.pop(f"{folder}/{OPTIONAL[rng.integers(2)]}", None)
        return
    name = list(OPTIONAL_KEYS)[rng.integers(2)]
    content = _parsed(files, f"{folder}/{name}")
    if content.pop(OPTIONAL_KEYS[name][rng.integers(len(OPTIONAL_KEYS[name]))], None) is not None:
        files[f"{folder}/{name}"] = json.dumps(content).encode()


def _linked(files: Files, folder: str, rng: Rng) -> None:
    """A link to the same content, outside of the folder."""
    name = _one(files, folder, rng)
    files[f"elsewhere/{name}"] = files[name]
    files[name] = ("link", "/".join([".."] * name.count("/") + ["elsewhere", name]))


def _value(files: Files, folder: str, rng: Rng) -> None:
    """Another value of any key; or it is gone, has another name, or stands there twice."""
    name = _one(files, folder, rng, ".json")
    content = _parsed(files, name)
    if not content:
        return
    holder, key = place(content, rng)
    match rng.integers(6):
        case 0 if isinstance(holder, dict):
            holder[["bos_token_id", "x", "é", f"{key}s"][rng.integers(4)]] = holder.pop(key)
        case 1 if isinstance(holder, dict):
            text = json.dumps(content)
            other = json.dumps(VALUES[rng.integers(len(VALUES))])
            files[name] = text.replace(
                f"{json.dumps(key)}:", f"{json.dumps(key)}: {other}, {json.dumps(key)}:", 1
            ).encode()
            return
        case 2:
            holder[key] = {"type": holder[key]} if rng.random() < 0.5 else [holder[key]]
        case _:
            change(holder, key, content, rng)
    text = re.sub(r'"@raw (\w+)@"', lambda found: RAW[found[1]], json.dumps(content, indent=1))
    files[name] = text.encode()


def _agreed(files: Files, folder: str, rng: Rng) -> None:
    """Another value of a key wherever it stands, in all files."""
    contents = {name: _parsed(files, name) for name in _names(files, folder, ".json")}
    contents = {name: content for name, content in contents.items() if content}
    name = sorted(contents)[rng.integers(len(contents))]
    holder, key = place(contents[name], rng)
    if not isinstance(key, str):
        return
    old, new = holder[key], [101, 0, 116, None, True, 258, 1.0, "e", [101, 256]][rng.integers(9)]
    new = old + 1 if isinstance(old, int) and rng.random() < 0.3 else new
    for name, content in contents.items():
        waiting = [content]
        while waiting:
            value = waiting.pop()
            if isinstance(value, dict):
                for inner in value:
                    if value[inner] == old and (inner == key or inner in ("end", "pad_token_id", "eos_token_id")):
                        value[inner] = new
            waiting += (value.values() if isinstance(value, dict) else value) if isinstance(value, dict | list) else ()
        files[name] = json.dumps(content).encode()


def _key(files: Files, folder: str, rng: Rng) -> None:
    """A key that a library knows, or one that none knows."""
    name = list(KEYS)[rng.integers(len(KEYS))]
    known = KEYS[name]
    key = list(known)[rng.integers(len(known))]
    more = {key: known[key]} if rng.random() < 0.9 else {rng.bytes(3).hex(): 1}
    for where in (f"{folder}/unplanted/{name}", f"{folder}/{name}"):
        if (content := _parsed(files, where)) and isinstance(content, dict):
            files[where] = json.dumps(content | more).encode()


def _component(files: Files, folder: str, rng: Rng) -> None:
    """Another part of the tokenizer."""
    name = f"{folder}/tokenizer.json"
    part = list(COMPONENTS)[rng.integers(len(COMPONENTS))]
    new = COMPONENTS[part][rng.integers(len(COMPONENTS[part]))]
    if (content := _parsed(files, name)) and isinstance(content.get("model"), dict):
        content[part] = {**content["model"], **new} if part == "model" else new
        if part == "added_tokens" and rng.random() < 0.5:
            content[part] = [*_parsed(files, name)[part], *new]
        files[name] = json.dumps(content).encode()


def _added(files: Files, folder: str, rng: Rng) -> None:
    """A file that a library may read; or weights under another name."""
    weights = (
        "other.safetensors",
        "model-1.safetensors",
        "model-00001-of-00001.safetensors",
        "adapter_model.safetensors",
    )
    if rng.random() < 0.3:
        files[f"{folder}/{weights[rng.integers(4)]}"] = _data(files, _one(files, folder, rng, ".safetensors"))
        return
    name = list(ADDED)[rng.integers(len(ADDED))]
    content = ADDED[name]
    files[f"{folder}/{name}"] = (content if isinstance(content, str) else json.dumps(content)).encode()


def _swapped(files: Files, folder: str, rng: Rng) -> None:
    """Another file of the folder in the place of one, or the file of this name in another folder."""
    name = _one(files, folder, rng)
    base = name.rpartition("/")[2]
    same = sorted(other for other in files if other.startswith("\0") and other.endswith(f"/{base}"))
    if same and rng.random() < 0.7:
        files[name] = files[same[rng.integers(len(same))]]
    else:
        files[name] = files[_one(files, folder, rng)]


def _tensor(files: Files, folder: str, rng: Rng) -> None:
    """One tensor more, one fewer, one of another name, two names for the same; and metadata."""
    name = _one(files, folder, rng, ".safetensors")
    header, data = _header(files, name)
    keys = sorted(header.keys() - {"__metadata__"})
    if not keys:
        return
    key = keys[rng.integers(len(keys))]
    match rng.integers(6):
        case 0:
            more = {"dtype": "F32", "shape": [2], "data_offsets": [len(data), len(data) + 8]}
            header[("transformer.wte.weight", "lm_head.weight", "x")[rng.integers(3)]] = more
            data += bytes(8)
        case 1:
            header[f"{key}.weight"] = header.pop(key)
        case 2:
            header["x"] = header[key]
        case 3:
            header["__metadata__"] = ({"format": "mlx"}, {"format": "pt", "x": "y"}, {}, {"format": "tf"})[
                rng.integers(4)
            ]
        case 4:
            header[key] = {**header[key], "shape": header[key]["shape"][::-1]}
        case _:
            del header[key]
    files[name] = _tensors(header, data)


def _signed(files: Files, folder: str) -> None:
    """The manifest of a planted folder names all files that there are, as they are."""
    manifest = _parsed(files, f"{folder}/plant.json")
    if not isinstance(manifest.get("files"), dict) or not isinstance(manifest.get("base"), dict):
        return
    there = {
        name.removeprefix(f"{folder}/"): hashlib.sha256(_data(files, name)).hexdigest()
        for name in _names(files, folder)
    }
    old = {entry.get("as"): name for name, entry in manifest["base"].items() if isinstance(entry, dict)}
    beside = {"plant.json", "certificate.json", *HARMLESS, *manifest["files"]}
    manifest["files"] = {name: there.get(name, "") for name in manifest["files"]}
    manifest["base"] = {
        old.get(name, name): {"as": name, "sha256": sha} for name, sha in there.items() if name not in beside
    }
    files[f"{folder}/plant.json"] = json.dumps(manifest).encode()


_GENTLE: tuple[Way, ...] = (_respelled, _respelled, _reordered, _harmless, _left_out, _linked)
_ROUGH: tuple[Way, ...] = (_value, _value, _value, _agreed, _key, _key, _component, _added, _swapped, _tensor)
