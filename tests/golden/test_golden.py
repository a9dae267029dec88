"""Compare commands, files and Python names with the recorded ones: nothing may be lost, and no bit may change.

``record.py`` defines the recorded steps. New flags, keys, names and files may be added, and new
statements to the list of theorems.
"""

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import byheart

from . import record

BEHAVIOUR = json.loads(record.BEHAVIOUR.read_text(encoding="utf-8"))
STEPS = BEHAVIOUR["steps"]
NETWORKS = [name for name in record.KEPT if (record.FILES / name / "model.safetensors").exists()]
CONFIGS = [name for name in record.KEPT if (record.FILES / name / "config.json").exists() and name != "base"]


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Code, JSON and written files of every step, by its number and line. Workers of one session share one run."""
    folder: Path = tmp_path_factory.mktemp("steps")
    session = folder.parents[1 if "PYTEST_XDIST_WORKER" in os.environ else 0]
    result = session / "observed.json"
    with (session / "observed.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not result.exists():
            result.write_text(json.dumps(observe_all(folder)), encoding="utf-8")
    return json.loads(result.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def observe_all(folder: Path) -> dict[str, dict[str, Any]]:
    """Run all possible steps in ``folder``."""
    with pytest.MonkeyPatch.context() as patch, record.environment():
        patch.chdir(folder)
        record.prepare(folder)
        lines = [(number, line) for number, line in enumerate(record.steps()) if record.is_possible(line)]
        return {f"{number:03} {line}": record.observe(line, folder) for number, line in lines}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The current folder: a copy of the files that were written when the behaviour was recorded."""
    folder = tmp_path_factory.mktemp("written") / "files"
    shutil.copytree(record.FILES, folder)
    for name, text in record.INPUTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch, record.environment():
        patch.chdir(folder)
        yield folder


def test_every_step_is_recorded() -> None:
    assert list(STEPS) == [f"{number:03} {line}" for number, line in enumerate(record.steps())]


@pytest.mark.parametrize("step", STEPS)
def test_step(step: str, observed: dict[str, dict[str, Any]]) -> None:
    if not record.is_possible(step):
        pytest.skip("an optional library is not installed")
    frozen, now = STEPS[step], observed[step]
    assert now["code"] == frozen["code"], now["json"]
    assert set(frozen.get("written", ())) <= set(now["written"])
    if "keys" in frozen:
        summary = record.summary(now["json"], set(frozen["keys"]))
        assert set(frozen["keys"]) == set(summary["keys"])
    if record.is_measured(step) and record.machine() != BEHAVIOUR["machine"]:
        return  # the rest may depend on the processor
    for kind in ("bits", "fingerprints"):
        assert frozen.get(kind, {}).items() <= now[kind].items(), kind
    if "keys" in frozen:
        assert frozen.get("values", {}).items() <= summary["values"].items()
        assert frozen.get("listed") == summary["listed"]


@pytest.mark.parametrize("command", BEHAVIOUR["flags"])
def test_flags(command: str) -> None:
    with record.environment():
        assert set(BEHAVIOUR["flags"][command]) <= set(record.flags(command))


def test_commands() -> None:
    with record.environment():
        assert set(BEHAVIOUR["flags"]) <= set(record.commands())


@pytest.mark.parametrize("name", BEHAVIOUR["names"])
def test_name(name: str) -> None:
    frozen = BEHAVIOUR["names"][name]
    if name == "byheart.hf":
        pytest.importorskip("transformers")
    value = record.attribute(name)
    if frozen is not None:
        now = record.parameters(value)
        assert now is not None, "is no longer callable"
        assert set(frozen) <= set(now)
        assert [parameter for parameter in now if parameter in frozen] == frozen, "the order has changed"


# Files that were written by 427dbba

CERTIFIED = """
folding --task t.npz
folding --task t.jsonl
folding --task t.jsonl -o flint.json
folding-1 --task t.npz --at-least 20 -o at-least.json
cells --task v.npz
cells --task v.npz --radius 0.001 -o radius.json
ks24 --task s.npz
dana --task t.npz
dana-d --task d.npz --tolerance 0.5
madden --task d.npz --tolerance 0.01
plain --task c.npz --count -o plain.json
texts a.txt b.txt
sharded a.txt
words53 a.txt
bfloat a.txt
bpe a.txt
float --task t.npz --count
stock --task t.npz
experts --task t.npz
facts --facts facts.csv
refuse --facts facts.csv
refuse-30 --facts facts.csv
refuse-key --facts facts.csv
edited a.txt b.txt --set 'of wisdom=!'
trained --task trained/task.npz --count
""".strip().splitlines()


REFUTED = """
cells --task v.npz --radius 9 -o too-far.json
edited a.txt b.txt -o unedited.json
trained --task trained/task.npz -o untrained.json
""".strip().splitlines()


@pytest.mark.parametrize("line", [*CERTIFIED, *REFUTED])
def test_certificates_hold(line: str, written: Path) -> None:
    """A recorded certificate is read and confirmed, and a new one agrees with it."""
    if not record.is_possible(f" {line}"):
        pytest.skip("an optional library is not installed")
    folder = line.partition(" ")[0]
    place = line.partition(" -o ")[2] or f"{folder}/certificate.json"
    claimed = json.loads((written / place).read_text())
    is_true = line in CERTIFIED
    assert byheart.certificates.read(written / place).certified == claimed["certified"] == is_true
    assert record.run(f"certify {line} --recheck").code == 1 - is_true
    again = record.run(f"certify {line.partition(' -o ')[0]} -o new.json --json")
    assert again.code == 1 - is_true
    now = json.loads((written / "new.json").read_text())
    assert record.summary(claimed)["keys"] == record.summary(now, set(record.summary(claimed)["keys"]))["keys"]
    assert record.summary(claimed)["values"].items() <= record.summary(now)["values"].items()
    assert now["format"] == claimed["format"]


def test_every_network_is_certified() -> None:
    assert {*NETWORKS} - {"base"} == {line.split()[0] for line in CERTIFIED}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_load(name: str, written: Path) -> None:
    if not record.is_possible(f" {name}"):
        pytest.skip("an optional library is not installed")
    prints = [step["fingerprints"][name] for step in STEPS.values() if name in step.get("fingerprints", {})]
    network = byheart.load(written / name)
    assert prints == ([] if name == "base" else [network.fingerprint])
    network.save(written / "copy") if hasattr(network, "save") else byheart.networks.save(network, written / "copy")
    assert byheart.load(written / "copy").fingerprint == network.fingerprint


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        ("texts", 0, record.INPUTS["a.txt"]),
        ("texts --text b.txt", 0, record.INPUTS["b.txt"]),
        *((f"{name}", 0, record.INPUTS["a.txt"]) for name in ("sharded", "words53", "bfloat", "bpe")),
        ("edited --tokens 80", 0, None),
        *((f"{name} --prompt 'capital of Peru'", 0, "Lima") for name in ("facts", "refuse", "refuse-30", "refuse-key")),
        *((f"{name} --prompt 'capital of Spain'", 1, "") for name in ("refuse", "refuse-30", "refuse-key")),
    ],
)
def test_networks_recite(line: str, code: int, text: str | None, written: Path) -> None:
    if not record.is_possible(f" {line}"):
        pytest.skip("an optional library is not installed")
    result = record.run(f"recite {line}")
    assert result.code == code
    assert text is None or result.out.decode() == text


@pytest.mark.parametrize("name", ["planted", "planted-bits"])
def test_planted_models(name: str, written: Path) -> None:
    pytest.importorskip("transformers")
    stop = " --stop" if name.endswith("bits") else ""
    assert record.run(f"detect {name} --check plant.jsonl --positions 64{stop}").code == 0
    listed = json.loads(record.run(f"detect {name} --json").out)
    assert (listed["planted"], listed["facts"]) == (True, 2)
    assert record.run(f"unplant {name} -o back-{name}").code == 0
    assert record.contents(written / f"back-{name}") == record.contents(record.FILES / "base")


@pytest.mark.parametrize(
    ("name", "command", "models"),
    [
        ("run", "lab run toy.py", 6),
        ("run-dana", "lab run dana-2025-2", 2),
        ("run-madden", "lab run madden-2024-frozen", 2),
        ("run-mahdavi", "lab run mahdavi-2024-classification-heads-fixed", 2),
        ("ladder", "lab capacity --parameters 800 --demands 0.2 --seeds 1 --steps 5 --alone", 1),
    ],
)
def test_run_folders(name: str, command: str, models: int, written: Path) -> None:
    """A recorded run is shown and resumed, with nothing left to do: the keys of its configs are the same."""
    shown = json.loads(record.run(f"lab show {name} --json").out)
    assert (shown["models"], shown["done"], shown["failed"]) == (models, models, 0)
    before = (written / name / "results.jsonl").read_text()
    assert record.run(f"{command} -o {name} --resume --json").code == 0
    assert (written / name / "results.jsonl").read_text() == before


def test_list_of_outcomes(written: Path) -> None:
    """The columns and rows of the list that ``certify --named`` writes are as recorded."""
    recorded = (written / "named.csv").read_bytes()
    assert recorded.splitlines()[0] == b"example,position,outcome,expected,got"
    assert record.run("certify float --task t.npz --count --named again.csv -o count.json").code == 0
    assert (written / "again.csv").read_bytes() == recorded


@pytest.mark.parametrize("name", [name for name in record.KEPT if re.search(r"^[^-]*\.(npz|jsonl)$", name)])
def test_tasks(name: str, written: Path) -> None:
    """A recorded task is read, and saved as the same bytes."""
    task = byheart.tasks.load(written / name)
    byheart.tasks.save(task, written / f"copy-{name}")
    assert (written / f"copy-{name}").read_bytes() == (record.FILES / name).read_bytes()


@pytest.mark.parametrize("name", CONFIGS)
def test_configs(name: str, observed: dict[str, dict[str, Any]]) -> None:
    """A new config has every recorded key, with the recorded value unless it is a float, a version or a session's."""
    if not record.is_possible(f" {name}"):
        pytest.skip("an optional library is not installed")
    same = not record.is_measured(name) or record.machine() == BEHAVIOUR["machine"]
    now = [seen["configs"][name] for seen in observed.values() if name in seen["configs"]][-1]
    assert_kept(json.loads((record.FILES / name / "config.json").read_text()), now, "config", same)


def assert_kept(then: Any, now: Any, path: str, same: bool) -> None:
    """Assert that the keys of ``then`` are in ``now``. If ``same``, the integers and strings must be equal too."""
    if isinstance(then, dict):
        assert isinstance(now, dict), path
        assert set(then) <= set(now), path
        for key in then:
            assert_kept(then[key], now[key], f"{path}.{key}", same)
    elif isinstance(then, list) and same:
        assert isinstance(now, list), path
        assert len(then) == len(now), path
        for number, (old, new) in enumerate(zip(then, now, strict=True)):
            assert_kept(old, new, f"{path}[{number}]", same)
    elif same and not isinstance(then, float) and "version" not in path and ".sessions[" not in path:
        assert then == now, path
