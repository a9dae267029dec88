"""Parquet files and saved datasets hold the same facts as a list does; they need pyarrow, the extra ``data``."""

import builtins
import json
import tracemalloc
from pathlib import Path

import pytest

from byheart import verify
from byheart.errors import BadInput
from byheart.files import memory
from byheart.tasks import Facts
from byheart.tasks import fact_files as reading

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
    assert Facts.read(tmp_path / "ids.parquet")[0].prompt == (1, 2)
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


def rewritten(pyarrow, saved, **columns):
    """The saved dataset with other columns, in its first file."""
    batch = pyarrow.RecordBatch.from_arrays([*columns.values()], names=[*columns])
    with pyarrow.ipc.new_stream(str(saved / "data-00000-of-00002.arrow"), batch.schema) as stream:
        stream.write_batch(batch)
    return saved


def test_a_billion_rows_of_nothing(pyarrow, saved):
    """176 bytes of nulls: the first row is refused before there is a second."""
    nothing = pyarrow.nulls(10**9)
    with pytest.raises(BadInput, match="row 1: the prompt is missing"):
        Facts.read(rewritten(pyarrow, saved, prompt=nothing, completion=nothing))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="limits are Linux's")
def test_what_unpacks_to_more_than_memory(pyarrow, saved, monkeypatch):
    """64 MiB of one letter in 6 kB, where there are 40; and what fits is read as before."""
    import resource

    text = pyarrow.array(["x" * (1 << 26)])
    batch = pyarrow.RecordBatch.from_arrays([text, text], names=["prompt", "completion"])
    path, options = saved / "data-00000-of-00002.arrow", pyarrow.ipc.IpcWriteOptions(compression="zstd")
    with pyarrow.ipc.new_stream(str(path), batch.schema, options=options) as stream:
        stream.write_batch(batch)
    assert path.stat().st_size < 20_000
    before = resource.getrlimit(resource.RLIMIT_AS)
    monkeypatch.setattr(memory, "available", lambda: 40 << 20)
    with pytest.raises(BadInput, match=rf"^{path}: unpacks to more than 80 % of the memory"):
        Facts.read(saved)
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    assert said(Facts.read(rewritten(pyarrow, saved, prompt=pyarrow.array(["a"]), completion=pyarrow.array(["b"]))))


@pytest.mark.parametrize("kind", ["dictionary", "run ends", "nulls in a list", "bits in a list", "views", "no fields"])
def test_columns_whose_values_take_no_room(pyarrow, saved, kind):
    """One text may stand there for a million: what they would take cannot be told from the file."""
    ends, once = pyarrow.array([10**9], pyarrow.int32()), pyarrow.array(["x"])
    hidden = {
        "dictionary": lambda: pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 0], pyarrow.int32()), once),
        "run ends": lambda: pyarrow.RunEndEncodedArray.from_arrays(ends, once),
        "nulls in a list": lambda: pyarrow.ListArray.from_arrays([0, 10**9], pyarrow.nulls(10**9)),
        "bits in a list": lambda: pyarrow.array([[True, False]]),
        "views": lambda: pyarrow.array(["x"], pyarrow.string_view()),
        "no fields": lambda: pyarrow.array([[{}, {}]], pyarrow.list_(pyarrow.struct([]))),
    }[kind]()
    with pytest.raises(BadInput, match=r"the column 'text' is '.*'; expected texts, numbers, lists or records of them"):
        Facts.read(rewritten(pyarrow, saved, text=hidden))


def test_rows_are_held_against_memory_a_few_at_a_time(pyarrow, tmp_path, monkeypatch):
    """Parquet writes a text once that every row has: 50,000 rows of a megabyte, in a file of a few kilobytes."""
    parquet = pytest.importorskip("pyarrow.parquet", reason=NEEDED)
    same, text = pyarrow.array([0] * 50_000, pyarrow.int32()), pyarrow.array(["x" * 10**6])
    once = pyarrow.DictionaryArray.from_arrays(same, text)
    parquet.write_table(pyarrow.table({"text": once}), tmp_path / "a.parquet", store_schema=False)
    asked = []
    monkeypatch.setattr("byheart.tasks.fact_files.check_memory", lambda needed, what: asked.append(needed))
    row = next(reading.rows(tmp_path / "a.parquet"))
    assert len(row[1]["text"]) == 10**6
    assert 64 * 10**6 < asked[-1] < 10**9


def test_a_file_whose_name_cannot_be_one(saved):
    (saved / "state.json").write_text(json.dumps({"_data_files": [{"filename": "a\0b"}]}))
    with pytest.raises(BadInput, match="names no files in its folder"):
        Facts.read(saved)


def test_of_a_row_group_some_pages_are_there_at_a_time(pyarrow, tmp_path):
    """4 MB in one group: of the file, a mebibyte is there, and not all of the group."""
    parquet = pytest.importorskip("pyarrow.parquet", reason=NEEDED)
    texts = [f"{number:05}" * 200 for number in range(4000)]
    path = tmp_path / "a.parquet"
    pages = {"data_page_size": 1 << 16, "write_batch_size": 64, "use_dictionary": False, "compression": "none"}
    parquet.write_table(pyarrow.table({"text": texts}), path, row_group_size=len(texts), **pages)
    assert parquet.ParquetFile(path).num_row_groups == 1
    pool = pyarrow.system_memory_pool()
    before = pool.bytes_allocated()
    tracemalloc.start()
    try:
        found = [(number, pool.bytes_allocated() - before) for number, _ in enumerate(reading.rows(path))]
        most = tracemalloc.get_traced_memory()[1] + max(held for _, held in found)
    finally:
        tracemalloc.stop()
    assert len(found) == len(texts)
    assert most < 1 << 21


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_header_tells_what_separates_fields(tmp_path, delimiter):
    lines = [("prompt", "completion"), ('"a,b;c"', "d"), ("e", '"f\tg\n,;"')]
    (tmp_path / "facts.csv").write_text("\n".join(delimiter.join(fields) for fields in lines), encoding="utf-8")
    assert said(Facts.read(tmp_path / "facts.csv")) == [("a,b;c", "d"), ("e", "f\tg\n,;")]
    assert verify.read_facts([str(tmp_path / "facts.csv")]) == [(b"a,b;c", b"d"), (b"e", b"f\tg\n,;")]
