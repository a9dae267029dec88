"""Facts from whatever people have: pairs, records, tables, folders; and what is refused, with its place."""

import json

import numpy as np
import pytest

from byheart.errors import BadInput
from byheart.tasks import Facts
from byheart.tasks.fact import Fact

PAIRS = [
    ("capital of France", "Paris"),
    ("πρωτεύουσα της Ελλάδας", "Αθήνα"),
    ("عاصمة مصر", "القاهرة"),
    ("中国的首都", "北京"),
    ("capital of Peru", 'Lima,\nthe "City of Kings"'),
]
"""Five facts in four scripts, one with all that makes tables hard."""


def quoted(field):
    return '"' + field.replace('"', '""') + '"'


def said(facts):
    return [(fact.prompt and fact.prompt.decode(), fact.completion.decode()) for fact in facts]


def table(folder, pairs=PAIRS, *, name="facts.csv", header="prompt,completion", newline="\n", before=""):
    lines = [header, *(f"{quoted(prompt)},{quoted(completion)}" for prompt, completion in pairs)]
    path = folder / name
    path.write_bytes((before + newline.join(lines) + newline).encode())
    return path


def lines(folder, *records, name="facts.jsonl"):
    path = folder / name
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return path


def test_pairs_records_and_a_dict_are_the_same_facts():
    records = [{"prompt": prompt, "completion": completion, "id": 3} for prompt, completion in PAIRS]
    questions = [{"question": prompt, "answer": completion} for prompt, completion in PAIRS]
    for given in (PAIRS, list(map(list, PAIRS)), dict(PAIRS), records, questions):
        facts = Facts(given)
        assert said(facts) == PAIRS
        assert [fact.place for fact in facts][:2] == ["facts[0]", "facts[1]"]
    assert repr(facts) == "Facts(5)"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("before", ["", "\ufeff"], ids=["", "BOM"])
def test_tables(tmp_path, newline, before):
    facts = Facts.read(table(tmp_path, newline=newline, before=before))
    assert said(facts) == PAIRS
    places = [fact.place for fact in facts]
    assert places == [f"{tmp_path}/facts.csv line {line}" for line in (2, 3, 4, 5, 6)]


def test_lines_are_counted_through_quotes_and_blank_lines(tmp_path):
    (tmp_path / "t.tsv").write_text('question\tnote\tanswer\na\t\t"b\nc"\n\nd\tx\te\n')
    facts = Facts.read(tmp_path / "t.tsv")
    assert said(facts) == [("a", "b\nc"), ("d", "e")]
    assert [fact.place.split()[-1] for fact in facts] == ["2", "5"]


def test_columns_by_name(tmp_path):
    path = table(tmp_path, header="land, city")
    assert said(Facts.read(path, columns=("land", "city"))) == PAIRS
    assert said(Facts.read(path, columns=("city", "land")))[0] == ("Paris", "capital of France")


def test_lines_of_json(tmp_path):
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2 + 2?"}]
    path = lines(
        tmp_path,
        {"prompt": "a", "completion": "b"},
        {"question": "c", "answer": "d"},
        {"text": "It was the best of times"},
        {"messages": [*chat, {"role": "assistant", "content": "4"}]},
    )
    assert said(Facts.read(path)) == [
        ("a", "b"),
        ("c", "d"),
        (None, "It was the best of times"),
        ("system: Be brief.\nuser: 2 + 2?\nassistant: ", "4"),
    ]


def test_several_files(tmp_path):
    facts = Facts.read(table(tmp_path), lines(tmp_path, {"prompt": "a", "completion": "b"}))
    assert said(facts) == [*PAIRS, ("a", "b")]


def test_a_folder_of_texts(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "one.txt").write_bytes(b"any \xff bytes")
    (tmp_path / "a.md").write_bytes(b"text")
    (tmp_path / ".hidden").write_bytes(b"not this")
    facts = Facts.read(tmp_path)
    assert [(fact.prompt, fact.completion) for fact in facts] == [(None, b"text"), (None, b"any \xff bytes")]
    assert [fact.place for fact in facts] == [f"{tmp_path}/a.md", f"{tmp_path}/b/one.txt"]


def test_token_ids(tmp_path):
    for given in ([([1, 2], [3])], [(np.array([1, 2]), (3,))]):
        facts = Facts(given)
        assert facts.are_ids
        assert [*facts] == [Fact((1, 2), (3,), "facts[0]")]
    assert Facts.read(lines(tmp_path, {"prompt": [1, 2], "completion": [3]}))[0].completion == (3,)


def test_a_fact_that_is_given_again_is_taken_once():
    facts = Facts([("a", "b"), ("c", "b"), ("a", "b"), ("a", "b"), "b"])
    assert said(facts) == [("a", "b"), ("c", "b"), (None, "b")]
    assert [*map(list, facts.repeated)] == [["facts[2]", "facts[3]"], ["facts[0]", "facts[0]"]]


BAD = {
    "no facts": ([], "there are no facts; expected at least one"),
    "a number": ([("a", "b"), 3], "facts[1] is 3; expected a pair (prompt, completion), a text, or a dict"),
    "a triple": ([("a", "b", "c")], "facts[0] is ('a', 'b', 'c'); expected a pair (prompt, completion)"),
    "empty completion": ([("a", "")], "facts[0]: the completion is empty; expected at least one character"),
    "empty prompt": ([("", "b")], "the prompt is empty; expected at least one character: a text that has no prompt"),
    "a missing answer": ([{"question": "a", "answer": None}], "facts[0]: the answer is missing; expected a text, or a"),
    "a number as answer": ([{"question": "a", "answer": 4}], 'the answer is 4; expected a text, "4" say, or a list'),
    "half a surrogate": ([("a", "\ud800")], "facts[0]: the completion holds half a surrogate pair; expected text"),
    "both kinds": (
        [("a", "b"), ([1], [2])],
        "facts[0] is text, and facts[1] has token ids; expected facts of one kind",
    ),
    "both in one": ([("a", [1])], "facts[0] is text, and facts[0] has token ids; expected facts of one kind"),
    "ids below 0": ([([-1], [2])], "facts[0]: the prompt holds the token -1; expected 0 to"),
    "ids in text": ([(["a"], [2])], "facts[0]: the prompt is ['a']; expected a text, or a list of token ids"),
    "other keys": (
        [{"land": "a", "city": "b"}],
        "facts[0]: found land, city; expected prompt and completion, question",
    ),
    "two ways": (
        [{"prompt": "a", "completion": "b", "text": "c"}],
        "which may be read in more than one way: say which",
    ),
    "no assistant": ([{"messages": [{"role": "user", "content": "a"}]}], "facts[0]: found user; expected messages of"),
    "no content": ([{"messages": [{"role": "user", "content": [1]}]}], "facts[0]: a message is"),
    "a text": ("a", "got str; expected pairs (prompt, completion), or a dict of them"),
    "nothing": (None, "got NoneType; expected pairs (prompt, completion), or a dict of them"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_are_no_facts(name):
    given, message = BAD[name]
    with pytest.raises(BadInput) as caught:
        Facts(given)
    assert message in str(caught.value)


BAD_FILES = {
    "latin1.csv": (
        b"prompt,completion\na,b\nc,caf\xe9\n",
        " line 3: the byte 0xe9 is not UTF-8; expected a table that",
    ),
    "short.csv": (
        b"prompt,completion\na,b\nc\n",
        " line 3: has 1 fields; expected 2, as the header has: quote a field",
    ),
    "quote.csv": (b'prompt,completion\na,"b\n', " line 2: unexpected end of data; expected fields that are quoted as"),
    "twice.csv": (b"prompt,prompt\na,b\n", " line 1: two columns are called 'prompt'; expected different names"),
    "columns.csv": (b"land,city\na,b\n", " line 2: found land, city; expected prompt and completion, question and"),
    "header.csv": (b"prompt,completion\n", ": there are no facts; expected at least one"),
    "empty.csv": (b"", ": there are no facts; expected at least one"),
    "empty.jsonl": (b"\n\n", ": there are no facts; expected at least one"),
    "broken.jsonl": (b'{"text": "a"}\n{"text": ', " line 2: not valid JSON"),
    "bytes.jsonl": (b'{"text": "a"}\n{"text": "\xff"}\n', " line 2: not UTF-8 text"),
    "list.jsonl": (b"[1, 2]\n", " line 1: [1, 2] found; expected a JSON object"),
    "empty.tsv": (b"prompt\tcompletion\na\t\n", " line 2: the completion is empty; expected at least one character"),
    "text.txt": (
        b"a",
        ": unknown extension '.txt'; expected .jsonl, .csv, .tsv, .parquet, or a folder, for facts; byheart",
    ),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_files_that_hold_no_facts(tmp_path, name):
    content, message = BAD_FILES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput) as caught:
        Facts.read(tmp_path / name)
    assert str(caught.value).startswith(f"{tmp_path / name}{message}")


def test_places_that_hold_no_facts(tmp_path):
    (tmp_path / "f").mkdir()
    for path, message in ((tmp_path / "f", "there are no facts"), (tmp_path / "none.csv", "No such file")):
        with pytest.raises(BadInput, match=f"^{path}: {message}"):
            Facts.read(path)
    with pytest.raises(BadInput, match=r"there is no 'town'; found prompt, completion$"):
        Facts.read(table(tmp_path), columns=("prompt", "town"))
    with pytest.raises(BadInput, match="columns are a, a; expected two different names"):
        Facts.read(table(tmp_path), columns=("a", "a"))
    with pytest.raises(BadInput, match="no files given"):
        Facts.read()


def test_long_fields_are_read_and_the_limit_of_others_stays(tmp_path):
    import csv

    limit = csv.field_size_limit()
    assert said(Facts.read(table(tmp_path, [("a", "b" * 200_000)]))) == [("a", "b" * 200_000)]
    assert csv.field_size_limit() == limit


def test_a_header_of_a_hundred_thousand_columns(tmp_path):
    """Each name is looked up, and not compared with all others: that would take minutes."""
    path = table(tmp_path, [], header=",".join(f"c{k}" for k in range(100_000)) + ",c7")
    with pytest.raises(BadInput, match="two columns are called 'c7'"):
        Facts.read(path)


def test_true_is_no_token_id():
    with pytest.raises(BadInput, match=r"the prompt is \[True, 2\]; expected a text, or a list of token ids"):
        Facts([([True, 2], [3])])
