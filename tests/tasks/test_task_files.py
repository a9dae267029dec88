import json
import os
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from byheart.errors import BadInput
from byheart.tasks import NextToken, NextTokenDistribution, QueryLabels, QueryTargets, SeqToSeq, load, save

TASK = NextToken(tokens=[[0, 1, 2], [3, 3, 0]], labels=[1, 0], label_count=10, vocab=200)
EXTENSIONS = ["npz", "jsonl"]


@st.composite
def tasks(draw):
    examples, length, dim = (draw(st.integers(1, 4)) for _ in range(3))
    if draw(st.booleans()):
        inputs = {"tokens": draw(hnp.arrays(np.int64, (examples, length), elements=st.integers(0, 2)))}
    else:
        finite = st.floats(allow_nan=False, allow_infinity=False)
        inputs = {"vectors": draw(hnp.arrays(np.float64, (examples, length, dim), elements=finite))}
    kind = draw(st.sampled_from([NextToken, SeqToSeq, NextTokenDistribution]))
    if kind is NextTokenDistribution:
        drawn = draw(hnp.arrays(np.float64, (examples, 3), elements=st.floats(0.1, 1)))
        weights = drawn[:, 0] / drawn[:, 0].sum() if draw(st.booleans()) else None
        return kind(**inputs, probabilities=drawn / drawn.sum(axis=1, keepdims=True), weights=weights)
    shape = (examples, length) if kind is SeqToSeq else (examples,)
    largest = 2**63 - 2
    labels = draw(hnp.arrays(np.int64, shape, elements=st.integers(0, largest)))
    return kind(**inputs, labels=labels, label_count=largest + 1)


@st.composite
def query_tasks(draw):
    examples, length, dim = (draw(st.integers(1, 4)) for _ in range(3))
    finite = st.floats(allow_nan=False, allow_infinity=False)
    shape = draw(st.sampled_from([(length, dim), (examples, length, dim)]))
    contexts = draw(hnp.arrays(np.float64, shape, elements=finite))
    queries = draw(hnp.arrays(np.float64, (examples, dim), elements=finite))
    if draw(st.booleans()):
        outputs = draw(st.sampled_from([(), (1,), (3,)]))
        targets = draw(hnp.arrays(np.float64, (examples, *outputs), elements=finite))
        return QueryTargets(contexts=contexts, queries=queries, targets=targets)
    labels = draw(hnp.arrays(np.int64, examples, elements=st.integers(0, 9)))
    return QueryLabels(contexts=contexts, queries=queries, labels=labels, label_count=10)


@pytest.mark.parametrize("extension", EXTENSIONS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(task=query_tasks())
def test_round_trip_of_queries(task, extension, tmp_path):
    path = tmp_path / f"task.{extension}"
    save(task, path)
    again = load(path)
    assert type(again) is type(task)
    assert again == task
    assert again.shared == task.shared
    assert again.queries.tobytes() == task.queries.tobytes()
    assert again.contexts.tobytes() == task.contexts.tobytes()


@pytest.mark.parametrize("extension", EXTENSIONS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(task=tasks())
def test_round_trip(task, extension, tmp_path):
    path = tmp_path / f"task.{extension}"
    save(task, path)
    again = load(path)
    assert type(again) is type(task)
    assert again == task
    assert again.inputs.tobytes() == task.inputs.tobytes()
    assert again.answers.tobytes() == task.answers.tobytes()
    assert os.listdir(tmp_path) == [path.name]


def test_sizes_and_kind_may_be_left_out(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, tokens=[[0, 1]], labels=[2])
    assert load(path) == NextToken(tokens=[[0, 1]], labels=[2])
    np.savez(path, tokens=[[0, 1]], labels=[[2, 1]])
    assert load(path) == SeqToSeq(tokens=[[0, 1]], labels=[[2, 1]])
    np.savez(path, tokens=[[0, 1]], probabilities=[[0.5, 0.5]])
    assert load(path) == NextTokenDistribution(tokens=[[0, 1]], probabilities=[[0.5, 0.5]])
    path = tmp_path / "t.jsonl"
    path.write_text('{"tokens": [0, 1], "label": 2}\n')
    assert load(path) == NextToken(tokens=[[0, 1]], labels=[2])
    path.write_text('\n{"vectors": [[1, 0.5]], "labels": [2]}\n\n{"vectors": [[0, -0.0]], "labels": [0]}')
    assert load(path) == SeqToSeq(vectors=[[[1.0, 0.5]], [[0.0, 0.0]]], labels=[[2], [0]])
    path.write_text('{"tokens": [0, 1], "probabilities": [0.5, 0.5]}\n')
    assert load(path) == NextTokenDistribution(tokens=[[0, 1]], probabilities=[[0.5, 0.5]])


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch, extension):
    path = tmp_path / f"t.{extension}"
    save(TASK, path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadInput) as caught:
        save(TASK.with_labels([5, 5]), path)
    assert str(caught.value) == f"{path}: cannot be written: No space left on device"
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_nothing_but_a_task_is_replaced(tmp_path):
    np.savez(tmp_path / "t.npz", temperatures=np.arange(3))
    (tmp_path / "t.jsonl").write_text('{"name": "Ada"}\n')
    before = {name: (tmp_path / name).read_bytes() for name in ("t.npz", "t.jsonl")}
    for name in before:
        with pytest.raises(BadInput, match=rf"{name}: exists and is no task; choose another name"):
            save(TASK, tmp_path / name)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    (tmp_path / "empty.npz").touch()
    save(TASK, tmp_path / "empty.npz")
    assert load(tmp_path / "empty.npz") == TASK


def test_saving_into_a_missing_folder(tmp_path):
    with pytest.raises(BadInput) as caught:
        save(TASK, tmp_path / "none" / "t.npz")
    assert str(caught.value) == f"{tmp_path}/none/t.npz: cannot be written: No such file or directory"


def assert_refused(path, message, where=""):
    with pytest.raises(BadInput) as caught:
        load(path)
    assert str(caught.value) == f"{path}{where}: {message}"


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_files_that_are_not_there(tmp_path, extension):
    path = tmp_path / f"t.{extension}"
    assert_refused(path, "No such file or directory")
    path.touch()
    assert_refused(path, "the file is empty")
    path.unlink()
    path.mkdir()
    assert_refused(path, "is a folder; expected a task file, .npz or .jsonl")


def test_unknown_extensions(tmp_path):
    message = "unknown extension '.csv'; expected .npz or .jsonl"
    with pytest.raises(BadInput, match=f"{message}$"):
        save(TASK, tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("a,b\n")
    assert_refused(
        tmp_path / "t.csv", f"{message}; byheart task text and byheart task facts make one of a text or of facts"
    )


NPZ = {"tokens": [[0, 1]], "labels": [2]}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            NPZ | {"extra": 1},
            "unknown array 'extra'; expected only tokens, vectors, contexts, labels, probabilities, targets, queries, "
            "weights, label_count, vocab, kind",
        ),
        ({"labels": [2]}, "none of the arrays tokens and vectors and contexts found; expected one of them"),
        (NPZ | {"vectors": [[[1.0]]]}, "2 of the arrays tokens and vectors and contexts found; expected one of them"),
        ({"tokens": [[0]]}, "none of the arrays labels and probabilities and targets found; expected one of them"),
        (
            NPZ | {"kind": "next-word"},
            "kind is 'next-word'; expected one of next-token, seq-to-seq, next-token-distribution, query-labels, "
            "query-targets",
        ),
        (NPZ | {"queries": [[1.0]]}, "there is an array 'queries' but none called 'contexts'; they go together"),
        (NPZ | {"weights": [1.0]}, "there is an array 'weights' but none called 'probabilities'; they go together"),
        (
            {"contexts": [[1.0]], "labels": [2]},
            "the arrays contexts, labels do not make a query-labels task: QueryLabels.__init__() missing 1 required "
            "keyword-only argument: 'queries'",
        ),
        (
            {"contexts": [[1.0]], "queries": [[1.0, 2.0]], "labels": [2]},
            "contexts has shape (1, 1) and queries (1, 2); expected [1, n, 2], or [n, 2] for a context that all share",
        ),
        (
            NPZ | {"kind": "query-labels"},
            "kind is query-labels and there is an array 'tokens'; the two do not go together",
        ),
        (
            {"tokens": [[0]], "probabilities": [[0.5, 0.5]], "weights": [0.5]},
            "weights sum to 0.5; expected 1 (within 1e-9)",
        ),
        (
            NPZ | {"kind": "next-token-distribution"},
            "kind is next-token-distribution and there is an array 'labels'; expected 'probabilities'",
        ),
        (NPZ | {"vocab": [2]}, "vocab has shape (1,); expected a scalar"),
        (NPZ | {"vocab": 2.5}, "vocab is 2.5; expected an integer"),
        (NPZ | {"kind": "seq-to-seq"}, "labels has shape (1,); expected [1, 2]"),
        (NPZ | {"label_count": 2}, "labels[0] is 2; expected 0 to 1 (label_count = 2)"),
        (
            NPZ | {"tokens": np.array([[None]])},
            "array 'tokens': its header is not that of an array of plain numbers",
        ),
    ],
)
def test_every_npz_check_fires(tmp_path, arrays, message):
    np.savez(tmp_path / "t.npz", **arrays)
    assert_refused(tmp_path / "t.npz", message)


def test_damaged_npz(tmp_path):
    path = tmp_path / "t.npz"
    save(TASK, path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    assert_refused(path, "the archive cannot be read: File is not a zip file")
    path.write_bytes(b"\x80\x04N.")
    assert_refused(path, "the archive cannot be read: File is not a zip file")
    tokens = TASK.tokens.tobytes()
    path.write_bytes(whole.replace(tokens, tokens[::-1]))
    assert_refused(path, "array 'tokens' cannot be read: Bad CRC-32 for file 'tokens.npy'")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tokens", "[[0, 1]]")
        archive.writestr("labels", "[2]")
    assert_refused(path, "array 'tokens': not a numpy array")


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), value=st.integers(0, 255), extension=st.sampled_from(EXTENSIONS))
def test_a_damaged_byte_is_refused_or_harmless(tmp_path, place, value, extension):
    path = tmp_path / f"t.{extension}"
    path.unlink(missing_ok=True)
    save(TASK, path)
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] = value
    path.write_bytes(content)
    with suppress(BadInput):
        load(path)


LINE = '{"tokens": [0, 1], "label": 2}'
KINDS = "next-token, seq-to-seq, next-token-distribution, query-labels, query-targets"
QUERY = '{"context": [[1, 0], [0, 1]], "query": [1, 2], "target": 0.5}'


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        (" \n", "", "no examples; expected one JSON object per line"),
        ('{"task": "next-token"}', "", "no examples; expected one JSON object per line"),
        (f'{LINE}\n{{"a"', ":2", "not valid JSON: Expecting ':' delimiter: line 1 column 5 (char 4)"),
        (f"{LINE}\n[1, 2]", ":2", "[1, 2] found; expected a JSON object"),
        ('{"vectors": [[NaN]], "label": 2}', ":1", "NaN found; expected finite numbers"),
        ('{"vectors": [[-Infinity]], "label": 2}', ":1", "-Infinity found; expected finite numbers"),
        (f'{{"task": "next-word"}}\n{LINE}', ":1", f"task is 'next-word'; expected one of {KINDS}"),
        (f'{{"task": []}}\n{LINE}', ":1", f"task is []; expected one of {KINDS}"),
        (f'{{"task": "next-token", "n": 1}}\n{LINE}', ":1", "unknown key 'n'; expected only task, label_count, vocab"),
        (f'{{"task": "next-token", "vocab": "a"}}\n{LINE}', "", "vocab is 'a'; expected an integer"),
        ('{"tokens": [0]}', ":1", "no answer; expected one of the keys label, labels, probabilities, target"),
        (
            f"{QUERY}\n{QUERY.replace('0.5', '[0.5, 1]')}",
            ":2",
            "target has shape (2,); expected (), as on line 1",
        ),
        (QUERY.replace("0.5", '[0.5, "1"]'), ":1", "target holds '1'; expected numbers"),
        (
            f'{QUERY}\n{{"query": [1, 2], "target": 1}}',
            ":2",
            "found the keys query, target; expected context and query and target",
        ),
        (f'{{"task": "query-targets", "vocab": 2}}\n{QUERY}', ":1", "unknown key 'vocab'; expected only task, context"),
        (
            '{"task": "query-targets", "context": [[1, 0], [0, 1e999]]}\n{"query": [1, 2], "target": 1}',
            ":1",
            "1e999 found; expected finite numbers",
        ),
        ('{"query": [1, 2], "target": 1}', ":1", "found the keys query, target; expected context and query and target"),
        (f'{{"task": "seq-to-seq"}}\n{LINE}', ":2", "found the keys label, tokens; expected tokens and labels"),
        ('{"label": 0}', ":1", "found the keys label; expected tokens and label"),
        (f'{LINE}\n{{"vectors": [[1]], "label": 0}}', ":2", "found the keys label, vectors; expected tokens and label"),
        (f'{LINE}\n\n{{"tokens": [0], "label": 0}}', ":3", "tokens has shape (1,); expected (2,), as on line 1"),
        ('{"vectors": [[1, 2], [3]], "label": 0}', ":1", "vectors is ragged; expected vectors of one dimension"),
        ('{"vectors": [1, 2], "label": 0}', ":1", "vectors holds 1; expected a list"),
        ('{"tokens": 3, "label": 0}', ":1", "tokens holds 3; expected a list"),
        ('{"tokens": [0, true], "label": 0}', ":1", "tokens holds True; expected integers"),
        ('{"tokens": [0, 1.0], "label": 0}', ":1", "tokens holds 1.0; expected integers"),
        ('{"tokens": [0], "label": [0]}', ":1", "label holds [0]; expected integers"),
        ('{"vectors": [["1"]], "label": 0}', ":1", "vectors holds '1'; expected numbers"),
        (
            f'{{"vectors": [[0.5, {2**53 + 1}]], "label": 0}}',
            ":1",
            "vectors holds an integer beyond 2^53; expected numbers that float64 holds exactly",
        ),
        ('{"vectors": [], "label": 0}', "", "vectors has shape (1, 0); expected [N, n, d]"),
        ('{"vectors": [[1e999]], "label": 0}', ":1", "1e999 found; expected finite numbers"),
        (
            f'{{"task": "next-token", "label_count": 3}}\n{LINE}\n{{"tokens": [0, 1], "label": 3}}',
            ":3",
            "labels[1] is 3; expected 0 to 2 (label_count = 3)",
        ),
        (f'{{"tokens": [{2**70}], "label": 0}}', ":1", f"{2**70} found; expected numbers that 64 bits hold"),
    ],
)
def test_every_jsonl_check_fires(tmp_path, text, where, message):
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    assert_refused(path, message, where)


def test_jsonl_that_is_not_text(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"tokens": [0], "label": 0}\n\xff\xfe')
    assert_refused(path, "not UTF-8 text", ":2")
    path.write_text("[" * 10**5)
    with pytest.raises(
        BadInput, match=f"{path}:1: lists or objects stand 100,000 deep in each other; expected at most 32"
    ):
        load(path)
    path.write_text(f'{{"tokens": [{"1" * 5000}], "label": 0}}')
    with pytest.raises(BadInput, match=f"{path}:1: 1{{16}}… .5,000 digits. found; expected numbers that 64 bits hold"):
        load(path)


def test_jsonl_is_plain(tmp_path):
    path = tmp_path / "t.jsonl"
    save(NextToken(vectors=[[[0.1, -0.0]]], labels=[4]), path)
    header, example = map(json.loads, path.read_text().splitlines())
    assert header == {"task": "next-token", "label_count": 5, "vocab": 1}
    assert example == {"vectors": [[0.1, 0.0]], "label": 4}
