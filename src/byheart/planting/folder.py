"""The folder of a planted model: the base's files as they were, the memory beside them, and a manifest of all.

=================================  ==================================================================================
``config.json``                    the base's, with another ``model_type``, ``planted_into``, the ``plan``, ``auto_map``
``model.safetensors.index.json``   which file holds which tensor, the memory's too
``base.safetensors``               the base's one file under another name: transformers would prefer the old one to an
                                   index; shards keep their names
``plant.safetensors``              the memory: 32-bit integers
``modeling_plant.py``              the code that runs it, for those who do not have Byheart
``unplanted/``                     the base's config.json and index as they were
``plant.json``                     the manifest: plan, and SHA-256 of every file
``certificate.json``               what was checked
=================================  ==================================================================================

All other files of the base lie there as they were. Every file is hostile until its hash is the manifest's; nothing in
the folder is executed by Byheart, which runs its own copy of the code.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from reprlib import repr as shortened
from tempfile import TemporaryDirectory
from typing import Any

from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from byheart.certificates.certificate import FILE as CERTIFICATE
from byheart.errors import BadInput
from byheart.files.reading import read_bytes, read_json
from byheart.files.tensors import read_tensors, write_tensors
from byheart.files.writing import check_apart, new_folder
from byheart.networks.folders import CONFIG, WEIGHTS
from byheart.planting import modeling_plant
from byheart.planting.memory import Made
from byheart.planting.modeling_plant import TYPE, Plan

FORMAT = "byheart-plant-1"
MANIFEST, MEMORY, CODE = "plant.json", "plant.safetensors", "modeling_plant.py"
BASE, INDEX, BEFORE = "base.safetensors", "model.safetensors.index.json", "unplanted"
PREFIX = "plant."
"""What the names of the memory's tensors begin with, in the model."""
OURS = {MANIFEST, MEMORY, CODE, BASE, CERTIFICATE}
"""Names that a base must not have already, a certificate aside."""
LENGTHS = ("max_position_embeddings", "n_positions")
"""What configurations call the most tokens that a model reads."""
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers", "encoder_layers")
"""And how many layers it has."""
MOST_HEADER = 1 << 27
PORTION = 1 << 24


@dataclass(frozen=True)
class Base:
    """A folder with a causal language model, as transformers lays it out, in safetensors."""

    folder: Path
    config: dict[str, Any]
    weights: dict[str, str]
    """File by tensor."""
    files: tuple[str, ...]
    """All files of the folder, with "/" between parts."""

    @property
    def vocab(self) -> int:
        """How many token ids the model has."""
        text = self.config.get("text_config", self.config)
        found = text.get("vocab_size") if isinstance(text, dict) else None
        if type(found) is not int or not 1 <= found <= 1 << 24:
            raise BadInput(f"{self.folder / CONFIG}: vocab_size is {shortened(found)}; expected a number of tokens")
        return found

    @property
    def into(self) -> str:
        """The ``model_type``."""
        return str(self.config["model_type"])


def reads(config: Mapping[str, Any]) -> int | None:
    """How many tokens a model reads at most, if its config.json says so."""
    return min((size for name in LENGTHS if type(size := config.get(name)) is int and size > 0), default=None)


def read_base(folder: Path) -> Base:
    """What is in a model's folder; BadInput if it is no causal language model that can be planted into."""
    try:
        config = read_json(folder / CONFIG)
    except OSError:
        raise BadInput(f"{folder}: has no {CONFIG}; expected the folder of a causal language model") from None
    kind = config.get("model_type")
    if kind == TYPE:
        raise BadInput(f"{folder}: has memories planted already; unplant it first")
    if not isinstance(kind, str):
        raise BadInput(f"{folder / CONFIG}: model_type is {shortened(kind)}; expected that of a causal language model")
    _check_kind(folder, kind, config.get("architectures"))
    files = tuple(sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()))
    taken = sorted(name for name in files if name in OURS - {CERTIFICATE} or name.startswith(f"{BEFORE}/"))
    if taken:
        raise BadInput(f"{folder}: has a file {taken[0]!r}, whose name is needed; rename it")
    weights = _weights(folder)
    _check_claims(folder, config, weights)
    return Base(folder, config, weights, files)


def _check_kind(folder: Path, kind: str, saved_as: object) -> None:
    """BadInput unless transformers has a causal language model of this type, and the folder was saved as one.

    Of another head it would load what it can, and draw the rest at random. A model without a head may do: if its
    output is its embedding, nothing is missing.
    """
    try:
        causal = modeling_plant.planted_classes(kind)[1].__bases__[1].__name__
    except ValueError as error:
        raise BadInput(f"{folder}: {error}") from error
    first = saved_as[0] if isinstance(saved_as, list) and saved_as else saved_as
    if first is not None and first not in (causal, MODEL_MAPPING_NAMES.get(kind)):
        raise BadInput(f"{folder}: was saved as {repr(first)[:60]}; expected a causal language model, {causal}")


def _check_claims(folder: Path, config: Mapping[str, Any], weights: Mapping[str, str]) -> None:
    """BadInput if a configuration claims more layers, or tokens, than its files can hold: they would all be made."""
    shapes = [shape for file in sorted(set(weights.values())) for shape in _shapes(folder / file).values()]
    largest = max((size for shape in shapes for size in shape), default=0)
    parts = [config, *(part for part in config.values() if isinstance(part, dict))]
    for name, claim in ((name, claim) for part in parts for name, claim in part.items() if type(claim) is int):
        most = largest if name == "vocab_size" else len(shapes) if name in LAYERS else claim
        if claim > most:
            held = f"the files hold {len(shapes):,} tensors, of {largest:,} rows at most"
            raise BadInput(f"{folder / CONFIG}: {name} is {claim:,}, and {held}; expected the model's own sizes")


def _weights(folder: Path) -> dict[str, str]:
    """Which file holds which tensor."""
    if (folder / WEIGHTS).is_file():
        return dict.fromkeys(_shapes(folder / WEIGHTS), WEIGHTS)
    if not (folder / INDEX).is_file():
        raise BadInput(f"{folder}: has no {WEIGHTS} and no {INDEX}; expected a model saved in safetensors")
    found = read_json(folder / INDEX).get("weight_map")
    if not isinstance(found, dict) or not found or not all(isinstance(name, str) for name in found.values()):
        raise BadInput(f"{folder / INDEX}: has no weight_map; expected the file of every tensor")
    for name in sorted(set(found.values())):
        if PurePosixPath(name).name != name or not (folder / name).is_file():
            raise BadInput(f"{folder / INDEX}: names {shortened(name)}, which is not in the folder")
    return found


def _shapes(path: Path) -> dict[str, list[int]]:
    """The shape of every tensor in a safetensors file; only its header is read."""
    from byheart.files.reading import parsed, read_part

    length = int.from_bytes(read_part(path, 0, 8), "little")
    if not 0 < length <= MOST_HEADER:
        raise BadInput(f"{path}: no safetensors file")
    header = parsed(read_part(path, 8, length))
    found: dict[str, list[int]] = {}
    for name, entry in header.items():
        if name != "__metadata__":
            shape = entry.get("shape") if isinstance(entry, dict) else None
            if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
                raise BadInput(f"{path}: {shortened(name)} has the shape {shortened(shape)}; expected sizes")
            found[name] = shape
    return found


def write(made: Made, base: Base, folder: Path, facts: str) -> None:
    """All files but the certificate, into ``folder``, which is new. ``facts`` is the fingerprint of what is planted."""
    (folder / BEFORE).mkdir()
    copied: dict[str, Any] = {}
    for name in base.files:
        place = BASE if name == WEIGHTS else f"{BEFORE}/{name}" if name in (CONFIG, INDEX, CERTIFICATE) else name
        copied[name] = {"as": place, "sha256": copy(base.folder / name, folder / place)}
    write_tensors(folder / MEMORY, {PREFIX + name: tensor for name, tensor in made.tensors.items()}, {"format": "pt"})
    write_json(folder / INDEX, index_of(folder, base, made))
    write_json(folder / CONFIG, config_of(base, made.plan))
    shutil.copyfile(modeling_plant.__file__, folder / CODE)
    ours = {name: digest(folder / name) for name in (MEMORY, CODE, CONFIG, INDEX)}
    plan = made.plan.as_json()
    manifest = {"format": FORMAT, "facts": facts, "words": made.words, "plan": plan, "files": ours, "base": copied}
    write_json(folder / MANIFEST, manifest)


def index_of(folder: Path, base: Base, made: Made) -> dict[str, Any]:
    """Which file of a planted folder holds which tensor."""
    where = {name: BASE if file == WEIGHTS else file for name, file in base.weights.items()}
    where |= dict.fromkeys((PREFIX + name for name in made.tensors), MEMORY)
    size = sum((folder / file).stat().st_size for file in set(where.values()))
    return {"metadata": {"total_size": size}, "weight_map": where}


def config_of(base: Base, plan: Plan) -> dict[str, Any]:
    """The configuration of a planted model: its base's, and how it is loaded."""
    names = {"AutoConfig": "PlantedConfig", "AutoModelForCausalLM": "PlantedForCausalLM"}
    auto = {auto: f"{Path(CODE).stem}.{name}" for auto, name in names.items()}
    more = {"model_type": TYPE, "planted_into": base.into, "plan": plan.as_json(), "auto_map": auto}
    return base.config | more | {"architectures": ["PlantedForCausalLM"]}


def write_json(path: Path, value: object) -> None:
    """A JSON file."""
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def copy(source: Path, place: Path) -> str:
    """Copy a file, and hash what was copied."""
    place.parent.mkdir(parents=True, exist_ok=True)
    found = hashlib.sha256()
    with source.open("rb") as old, place.open("xb") as new:
        while portion := old.read(PORTION):
            found.update(portion)
            new.write(portion)
    return found.hexdigest()


@dataclass(frozen=True)
class Manifest:
    """What a planted folder says of itself, checked as far as that goes without the files."""

    plan: Plan
    facts: str
    words: int
    files: dict[str, str]
    """SHA-256 of what planting has made, by name."""
    base: dict[str, tuple[str, str]]
    """Name in the planted folder and SHA-256 of the base's files, by the names that they had."""

    @property
    def places(self) -> set[str]:
        """All files of the folder that the manifest names."""
        return {MANIFEST, *self.files, *(place for place, _ in self.base.values())}


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a planted folder; BadInput if there is none, or it makes no sense."""
    path = folder / MANIFEST
    try:
        given = read_json(path)
    except OSError:
        raise BadInput(f"{folder}: has no {MANIFEST}; expected a folder that byheart plant wrote") from None
    if given.get("format") != FORMAT or given.keys() != {"format", "facts", "words", "plan", "files", "base"}:
        raise BadInput(f"{path}: no manifest of this version; expected format {FORMAT!r} and what belongs to it")
    files, base = given["files"], given["base"]
    if not _are_texts(files) or files.keys() != {MEMORY, CODE, CONFIG, INDEX}:
        raise BadInput(f"{path}: files is {shortened(files)}; expected hashes of {MEMORY}, {CODE}, {CONFIG}, {INDEX}")
    if not isinstance(base, dict) or not all(_are_texts(one) and set(one) == {"as", "sha256"} for one in base.values()):
        raise BadInput(f"{path}: base is {shortened(base)}; expected the place and the hash of every file")
    found = {name: (one["as"], one["sha256"]) for name, one in base.items()}
    for name in {*found, *(place for place, _ in found.values())}:
        _check_inside(path, name)
    if CONFIG not in found or not {WEIGHTS, INDEX} & found.keys():
        raise BadInput(f"{path}: base lacks {CONFIG} or the weights; expected every file of the base")
    if len({place for place, _ in found.values()} | set(files)) != len(found) + len(files):
        raise BadInput(f"{path}: two files have one place; expected different ones")
    if type(given["words"]) is not int or not isinstance(given["facts"], str):
        raise BadInput(f"{path}: words or facts are damaged; expected a number, and a hash")
    return Manifest(_plan(path, given["plan"]), given["facts"], given["words"], files, found)


def _are_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


def _check_inside(path: Path, name: str) -> None:
    """BadInput unless a name leads to a file in the folder."""
    parts = name.split("/")
    if not name or any(part in ("", ".", "..") for part in parts) or "\\" in name or "\0" in name:
        raise BadInput(f"{path}: names {shortened(name)}; expected a file inside the folder")


def _plan(path: Path, given: object) -> Plan:
    try:
        return Plan.of(given)
    except ValueError as error:
        raise BadInput(f"{path}: {error}") from error


def read_memory(folder: Path) -> tuple[Manifest, Made]:
    """The memory of a planted folder; BadInput unless config.json, memory and code are those that were written."""
    manifest = read_manifest(folder)
    for name, expected in manifest.files.items():
        _check_hash(folder / name, expected)
    plan = _plan(folder / CONFIG, read_json(folder / CONFIG).get("plan"))
    if plan != manifest.plan:
        raise BadInput(f"{folder / CONFIG}: its plan is not that of {MANIFEST}; one of them was changed")
    try:
        tensors = read_tensors(folder / MEMORY, ("I32",))
    except BadInput as error:
        raise BadInput(f"{folder / MEMORY}: {error}") from error
    if odd := sorted(name for name in tensors if not name.startswith(PREFIX)):
        raise BadInput(f"{folder / MEMORY}: has a tensor {odd[0]!r}; expected names that begin with {PREFIX}")
    return manifest, Made(plan, {name.removeprefix(PREFIX): tensor for name, tensor in tensors.items()})


def _check_hash(path: Path, expected: str) -> None:
    if path.is_symlink() or not path.is_file():
        raise BadInput(f"{path}: no such file; the folder is incomplete")
    if digest(path) != expected:
        raise BadInput(f"{path}: was changed since it was planted: its SHA-256 is not that of {MANIFEST}")


def check_base(folder: Path, base: Mapping[str, tuple[str, str]]) -> None:
    """BadInput unless these files of the base are, bit for bit, those that were there before."""
    for place, expected in base.values():
        _check_hash(folder / place, expected)


def check_written(folder: Path, base: Base, manifest: Manifest, made: Made) -> None:
    """BadInput unless transformers loads the base's files and the memory, and nothing that the manifest does not name.

    A file beside them may be preferred to them (``model.safetensors`` to the index), or be read too (adapters); and
    whoever changes config.json or the index can make the manifest agree with it.
    """
    if strange := [name for name in _strange(folder, manifest) if not (name.endswith(".md") or name.startswith("."))]:
        raise BadInput(f"{folder}: holds {strange[0]!r}, which was not planted and may be loaded; remove it")
    for name, expected in ((CONFIG, config_of(base, made.plan)), (INDEX, index_of(folder, base, made))):
        if read_json(folder / name) != expected:
            raise BadInput(f"{folder / name}: is not what planting writes for this base; plant the facts anew")


def check_planted_place(folder: Path) -> None:
    """BadInput if ``folder`` holds anything but a planted model that Byheart wrote, which may be replaced."""
    if not folder.exists() and not folder.is_symlink():
        return
    if folder.is_dir() and not any(folder.iterdir()):
        return
    try:
        manifest = read_manifest(folder)
    except BadInput:
        raise BadInput(f"{folder}: exists and is no planted model; choose another name or remove it") from None
    if strange := _strange(folder, manifest):
        raise BadInput(f"{folder}: exists and holds {strange[0]!r}, which was not planted; choose another name")


def _strange(folder: Path, manifest: Manifest) -> list[str]:
    """Files of a folder that its manifest does not name."""
    paths = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return sorted({path.relative_to(folder).as_posix() for path in paths} - manifest.places - {CERTIFICATE})


def check_base_place(folder: Path) -> None:
    """BadInput if ``folder`` is there already: what is given back replaces nothing."""
    if folder.is_symlink() or (folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))):
        raise BadInput(f"{folder}: exists; choose another name or remove it")


@contextmanager
def replacing(folder: Path, base: Path) -> Iterator[Path]:
    """A new folder for a planted model, which takes the place of ``folder``, or goes if there was an error."""
    check_apart(folder, base)
    with new_folder(folder, check_planted_place) as new:
        yield new


def unplant(folder: Path | str, out: Path | str) -> int:
    """Give the base back, file by file, under their old names: how many. BadInput if a hash is another.

    What ``save_pretrained`` has written anew has other files: only their tensors are the base's.
    """
    folder, out = Path(folder), Path(out)
    manifest = read_manifest(folder)
    check_apart(out, folder)
    check_base(folder, manifest.base)
    with new_folder(out, check_base_place) as new:
        for name, (place, expected) in manifest.base.items():
            if copy(folder / place, new / name) != expected:
                raise BadInput(f"{folder / place}: was changed while it was copied; unplant it again")
    return len(manifest.base)


@contextmanager
def base_of(folder: Path, manifest: Manifest, *, weights: bool = True) -> Iterator[Path]:
    """The base for a moment: a folder of links to its files, under their old names; or all of it but its weights."""
    files = {name: one for name, one in manifest.base.items() if weights or not name.endswith(".safetensors")}
    check_base(folder, files)
    with TemporaryDirectory() as temporary:
        for name, (place, _) in files.items():
            link = Path(temporary, name)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to((folder / place).resolve())
        yield Path(temporary)


def is_planted(config: Mapping[str, Any]) -> bool:
    """Whether a config.json is that of a planted model."""
    return config.get("model_type") == TYPE


def has_memory(folder: Path) -> bool:
    """Whether tensors of a memory lie in a folder, whatever its config.json says."""
    names = read_bytes(folder / INDEX).decode(errors="replace") if (folder / INDEX).is_file() else ""
    single = _shapes(folder / WEIGHTS) if (folder / WEIGHTS).is_file() else []
    return f'"{PREFIX}table"' in names or f"{PREFIX}table" in single or (folder / MEMORY).is_file()
