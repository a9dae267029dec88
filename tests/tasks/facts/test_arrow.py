"""Parquet files and saved datasets hold the same facts as a list does; they need pyarrow, the extra ``data``."""

import builtins
import json

import pytest

from byheart.errors import BadInput
from byheart.tasks import Facts

PAIRS = [("capital of France", "Paris"), ("πρωτεύουσα της Ελλάδας", "Αθήνα"), ("中国的首都", "北京")]
NEEDED = "pyarrow is not installed: pip install -e '.[data]'"


@pytest.fixture
def pyarrow():
    return pytest.importorskip("pyarrow", reason=NEEDED)


def columns(pyarrow, kind="string"):
    prompts, completions = zip(*PAIRS, strict=True)
    of = getattr(pyarrow, kind)()
    return pyarrow.table({"prompt": pyarrow.array(prompts, of), "id": [1, 2, 3], "completion": completions})


def said(facts):
    return [(fact.prompt.decode(), fact.completion.decode()) for fact in facts]


@pytest.mark.parametrize("kind", ["string", "large_string"])
def test_parquet(pyarrow, tmp_path, kind):
    parquet = pytest.importorskip("pyarrow.parquet", reason=NEEDED)
    parquet.write_table(columns(pyarrow, kind), tmp_path / "facts.parquet", row_group_size=2)
    facts = Facts.read(tmp_path / "facts.parquet")
    assert said(facts) == PAIRS
    assert [fact.place for fact in facts] == [f"{tmp_path}/facts.parquet row {row}" for row in (1, 2, 3)]


def test_lists_and_messages(pyarrow, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason=NEEDED)
    parquet.write_table(pyarrow.table({"prompt": [[1, 2]], "completion": [[3]]}), tmp_path / "ids.parquet")
    assert Facts.read(tmp_path / "ids.parquet").facts[0].prompt == (1, 2)
    chat = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}]
    parquet.write_table(pyarrow.table({"messages": [chat]}), tmp_path / "chat.parquet")
    assert said(Facts.read(tmp_path / "chat.parquet")) == [("user: 2 + 2?\nassistant: ", "4")]


def test_parquet_that_holds_no_facts(pyarrow, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason=NEEDED)
    path = tmp_path / "facts.parquet"
    for content in (b"", b"PAR1", b"nothing that pyarrow knows"):
        path.write_bytes(content)
        with pytest.raises(BadInput, match=rf"^{path}: cannot be read \("):
            Facts.read(path)
    parquet.write_table(columns(pyarrow), path)
    whole = path.read_bytes()
    path.write_bytes(whole[:40] + b"\xff" * 40 + whole[80:])
    with pytest.raises(BadInput, match=rf"^{path}"):
        Facts.read(path)
    parquet.write_table(pyarrow.table({"prompt": ["a", None], "completion": ["b", "c"]}), path)
    with pytest.raises(BadInput, match=rf"^{path} row 2: the prompt is missing; expected a text"):
        Facts.read(path)
    parquet.write_table(pyarrow.table({"land": ["a"], "city": ["b"]}), path)
    with pytest.raises(BadInput, match=rf"^{path} row 1: found land, city; expected prompt and completion"):
        Facts.read(path)


@pytest.fixture
def saved(pyarrow, tmp_path):
    """A folder as ``datasets.save_to_disk`` writes it: arrow streams, and a state that names them."""
    folder = tmp_path / "dataset"
    folder.mkdir()
    table = columns(pyarrow)
    names = [f"data-{part:05}-of-00002.arrow" for part in range(2)]
    for name, rows in zip(names, (table.slice(0, 2), table.slice(2)), strict=True):
        with pyarrow.OSFile(str(folder / name), "wb") as sink, pyarrow.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(rows)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    (folder / "dataset_info.json").write_text("{}")
    return folder


def test_a_saved_dataset(saved):
    facts = Facts.read(saved)
    assert said(facts) == PAIRS
    assert [fact.place for fact in facts] == [f"{saved} row {row}" for row in (1, 2, 3)]


@pytest.mark.parametrize("name", ["../facts.arrow", "/etc/hostname", "sub/x.arrow", "", 3])
def test_a_dataset_names_only_its_own_files(saved, name):
    (saved / "state.json").write_text(json.dumps({"_data_files": [{"filename": name}]}))
    with pytest.raises(BadInput):
        Facts.read(saved)


def test_a_dataset_that_is_broken(saved):
    part = saved / "data-00001-of-00002.arrow"
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(BadInput, match=rf"^{part}: cannot be read \("):
        Facts.read(saved)
    (saved / "state.json").write_text("{}")
    with pytest.raises(BadInput, match=r"state\.json: names no files in its folder"):
        Facts.read(saved)


def test_splits_are_named(tmp_path):
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(BadInput, match=f"in splits; expected one of them: {tmp_path}/train, {tmp_path}/test"):
        Facts.read(tmp_path)


def test_without_pyarrow(tmp_path, monkeypatch):
    (tmp_path / "facts.parquet").write_bytes(b"PAR1")
    (tmp_path / "state.json").write_text("{}")
    (tmp_path / "dataset_info.json").write_text("{}")
    found = builtins.__import__

    def without(name, *others):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return found(name, *others)

    monkeypatch.setattr(builtins, "__import__", without)
    for path in (tmp_path / "facts.parquet", tmp_path):
        with pytest.raises(BadInput, match=r"reading .* needs pyarrow, which is not installed; .*'\.\[data\]'"):
            Facts.read(path)
