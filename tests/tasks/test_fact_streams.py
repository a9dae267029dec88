"""Facts are read a row at a time and kept narrow: nothing is lost, and what they take is known, and asked for."""

import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.errors import BadInput
from byheart.files import memory, untrusted
from byheart.tasks import Facts
from byheart.tasks import facts as module
from byheart.tasks.fact_files import rows
from byheart.tasks.facts import FactNames

NAMES = st.sampled_from(["a line ", "a row ", "facts["]).flatmap(
    lambda stem: st.integers(0, 20).map(lambda number: f"{stem}{number}" + "]" * stem.endswith("["))
)


@given(st.lists(NAMES | st.text("a01]٣ ", max_size=5) | st.integers(0, 10**25).map("f{}".format), max_size=12))
def test_places_are_the_names_that_were_given(names):
    places = FactNames(names)
    assert [*places] == names
    assert [*places[1:-1]] == names[1:-1]
    assert [*places[::-2]] == names[::-2]
    assert [*places.select(np.arange(2 * len(names)) // 2)] == [name for name in names for _ in range(2)]
    assert len(places) == len(names)
    with pytest.raises(IndexError):
        places[len(names)]


def test_places_that_differ_in_a_number_take_no_string_each():
    tracemalloc.start()
    try:
        places = FactNames(f"facts.csv line {number}" for number in range(10**4))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert places[-1] == "facts.csv line 9999"
    assert held < 12 * 10**4


PAIRS = [(f"the name of number {number:06}", f"{number * 7919 % 10**9:010}") for number in range(2000)]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("facts")
    records = [{"prompt": prompt, "completion": completion} for prompt, completion in PAIRS]
    (folder / "facts.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    (folder / "facts.csv").write_text("prompt,completion\n" + "".join(f"{prompt},{said}\n" for prompt, said in PAIRS))
    try:
        from pyarrow import parquet, table

        columns = zip(("prompt", "completion"), map(list, zip(*PAIRS, strict=True)), strict=True)
        parquet.write_table(table(dict(columns)), folder / "facts.parquet")
    except ImportError:
        pass
    return folder


def taken(make):
    """The most that there was at once while something is made, in bytes."""
    tracemalloc.start()
    try:
        made = make()
        return made, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["facts.csv", "facts.jsonl", "facts.parquet"])
def test_what_facts_take_while_they_are_read(files, name):
    """Their bytes and 60 more, each; and 64 KiB for whoever reads. As Python's objects they take many times that."""
    if not (files / name).exists():
        pytest.skip("pyarrow is not installed")
    Facts.read(files / name)  # imports and caches are not counted
    facts, most = taken(lambda: Facts.read(files / name))
    assert [(fact.prompt.decode(), fact.completion.decode()) for fact in facts] == PAIRS
    assert most < len(facts.pieces) + 60 * len(facts) + (1 << 16)
    if name == "facts.csv":
        _, held = taken(lambda: list(rows(files / name)))
        assert held > 3 * most


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [("a.csv", b"text\na\nb\n\xff\n", 4), ("a.jsonl", b'{"text": "a"}\n{"text": "b"}\n{', 3)],
)
def test_rows_come_before_what_is_behind_them_is_read(tmp_path, name, content, line):
    (tmp_path / name).write_bytes(content)
    found = rows(tmp_path / name)
    assert [next(found)[1], next(found)[1]] == [{"text": "a"}, {"text": "b"}]
    with pytest.raises(BadInput, match=rf"{name} line {line}: "):
        next(found)


def test_a_table_whose_lines_end_as_they_like(tmp_path):
    """Old ones end with a carriage return; and in quotes, either is text."""
    (tmp_path / "a.csv").write_bytes(b'\xef\xbb\xbfprompt,completion\ra,b\rc,"d\re\nf"\r\ng,h\n')
    facts = Facts.read(tmp_path / "a.csv")
    assert [(fact.prompt, fact.completion) for fact in facts] == [(b"a", b"b"), (b"c", b"d\re\nf"), (b"g", b"h")]
    assert [place.split()[-1] for place in facts.places] == ["2", "3", "6"]
    (tmp_path / "a.csv").write_bytes(b"text\ra")
    assert [fact.completion for fact in Facts.read(tmp_path / "a.csv")] == [b"a"]


def test_ids_are_as_narrow_as_they_are():
    """By hand: the second fact needs 16 bits, the third 32; and all come back."""
    given = [([1, 255], [2]), ([1, 256], [3]), ([65536], [0, 2**31 - 3])]
    assert [Facts(given[:count]).pieces.dtype for count in (1, 2, 3)] == [np.uint8, np.uint16, np.uint32]
    facts = Facts(given)
    assert [([*fact.prompt], [*fact.completion]) for fact in facts] == given
    assert facts.starts.tolist() == [0, 3, 6, 9]
    assert facts.given.tolist() == [2, 2, 1]
    assert facts.asked == 4


def test_facts_are_told_apart_where_their_bytes_are_the_same(monkeypatch):
    """("ab", "c") is not ("a", "bc"), nor the text; with a hash that says nothing, either."""
    given = [("ab", "c"), ("a", "bc"), "abc", ("ab", "c"), "abc", ("b", "ab")]
    for key, some in ((hash, 1 << 16), (lambda _: 7, 4)):
        monkeypatch.setattr(module, "hash", key, raising=False)
        monkeypatch.setattr("byheart.tasks.facts.SOME", some)
        facts = Facts(given)
        assert [(fact.prompt, fact.completion) for fact in facts] == [
            (b"ab", b"c"),
            (b"a", b"bc"),
            (None, b"abc"),
            (b"b", b"ab"),
        ]
        assert [*facts.places] == ["facts[0]", "facts[1]", "facts[2]", "facts[5]"]
        assert [*zip(*facts.repeated, strict=True)] == [("facts[3]", "facts[0]"), ("facts[4]", "facts[2]")]
    with pytest.raises(IndexError):
        facts[4]


def test_which_prompts_are_known():
    facts = Facts([("ab", "c"), ("é", "x"), "text"])
    assert facts.prompt_count == 2
    known = [prompt for prompt in (b"ab", "é".encode(), b"xx", b"te", b"text", b"") if facts.knows(prompt)]
    assert known == [b"ab", "é".encode()]


def test_memory_is_asked_for_before_it_is_taken(tmp_path, monkeypatch):
    """A file that is too large as a whole, a row that is, and what was said to be less and is not."""
    path = tmp_path / "a.csv"
    path.write_text("text\n" + "x" * 3000 + "\n" + "y" * 100 + "\n")
    monkeypatch.setattr(memory, "available", lambda: 10_000)
    with monkeypatch.context() as full:
        full.setattr(memory, "_disk_space", lambda: 0)
        with pytest.raises(BadInput, match=r"^\S+a\.csv would take 0\.0 MiB; expected at most 0\.0 MiB of memory and"):
            Facts.read(path)
    monkeypatch.setattr(memory, "available", lambda: 20_000)
    monkeypatch.setattr(untrusted, "LONG_LINE", 1000)
    with pytest.raises(BadInput, match=r"^\S+a\.csv line 2, of at least 0\.0 MiB, would take"):
        Facts.read(path)
    with pytest.raises(BadInput, match=r"^what is read from facts\[0\] on would take 1\.0 MiB of memory.*: split the"):
        Facts([("a", "b")])


def test_a_row_of_many_lines_is_held_against_memory(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text('text\n"' + 3000 * "x\n" + '"\n')
    monkeypatch.setattr("byheart.tasks.fact_files.LONG_LINE", 1000)
    monkeypatch.setattr(memory, "available", lambda: 50_000)
    with pytest.raises(BadInput, match=r"^the row that \S+a\.csv line \d+ belongs to would take"):
        Facts.read(path)
