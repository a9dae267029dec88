import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from byheart.errors import BadInput
from byheart.files import memory
from byheart.tasks import NextToken, equal_contexts, load, parting, save
from byheart.tasks.contexts import Contexts
from byheart.tasks.questions import as_contexts
from byheart.tasks.texts import Text
from byheart.tasks.windows import task_contexts, text_contexts

END = 26
VOCAB = 27


def texts_of(*words: str) -> list[Text]:
    return [Text(word[:20], np.array([ord(letter) - ord("a") for letter in word], np.int32)) for word in words]


def answered(contexts: Contexts) -> dict[str, str]:
    """Contexts and labels as letters: "-" is what is missing, "." the end."""
    rows = contexts.windows(slice(None))
    spelt = ["".join("-" if token < 0 else chr(ord("a") + token) for token in row) for row in rows]
    assert len(set(spelt)) == len(spelt) == len(contexts)
    return {
        row: "." if label == END else chr(ord("a") + label) for row, label in zip(spelt, contexts.labels, strict=True)
    }


def recite(*words: str, **settings: int) -> Contexts:
    return text_contexts(texts_of(*words), vocab=VOCAB, end=END, **settings)


class Oracle:
    """What :func:`text_contexts` says, by dictionaries over strings."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        follows = defaultdict(set)
        for word in words:
            for k in range(1, len(word) + 1):
                follows[word[:k]].add((word + ".")[k])
        self.parting = {beginning for beginning, answers in follows.items() if len(answers) > 1}
        self.refused = any(word in self.parting for word in words)

    def answers(self, window: int) -> dict[str, str] | None:
        """What follows each context, or None if that is not one answer."""
        found: dict[str, str] = {}
        for word in self.words:
            for k in range(1, len(word) + 1):
                context = ("-" * window + word[:k])[-window:]
                answer = (word + ".")[k]
                if word[:k] not in self.parting and found.setdefault(context, answer) != answer:
                    return None
        return found

    def prompts(self) -> tuple[int, ...]:
        return tuple(
            1 + max((k for k in range(1, len(word) + 1) if word[:k] in self.parting), default=0) for word in self.words
        )


@st.composite
def some_words(draw):
    """Texts over few letters that begin alike, repeat each other and repeat themselves."""
    letters = draw(st.sampled_from(["a", "ab", "abc"]))
    short = st.text(letters, max_size=6)
    pieces = draw(st.lists(st.text(letters, min_size=1, max_size=12), min_size=1, max_size=3))
    word = st.builds("".join, st.lists(st.sampled_from(pieces) | short, min_size=1, max_size=4)).filter(bool)
    return draw(st.lists(word, min_size=1, max_size=5))


@pytest.mark.slow
@settings(max_examples=500)
@given(some_words())
def test_found_windows_are_right(words):
    oracle = Oracle(words)
    if oracle.refused:
        with pytest.raises(BadInput, match="is the beginning of"):
            recite(*words)
        return
    contexts = recite(*words)
    window = next(2**k for k in range(20) if oracle.answers(2**k) is not None)
    assert contexts.window == window
    assert answered(contexts) == oracle.answers(window)
    assert contexts.prompts == oracle.prompts()
    assert (np.diff(contexts.places) > 0).all()


@pytest.mark.slow
@settings(max_examples=500)
@given(some_words(), st.integers(1, 40))
def test_given_windows_are_right(words, window):
    oracle = Oracle(words)
    if oracle.refused:
        return
    if oracle.answers(window) is None:
        with pytest.raises(BadInput, match=f"agree on the last {window} tokens"):
            recite(*words, window=window)
        return
    contexts = recite(*words, window=window)
    assert contexts.window == window
    assert answered(contexts) == oracle.answers(window)
    assert contexts.prompts == oracle.prompts()


@pytest.mark.slow
@settings(max_examples=300)
@given(some_words(), st.integers(1, 40))
def test_the_largest_window_is_tried(words, largest):
    oracle = Oracle(words)
    if oracle.refused:
        return
    tried = [2**k for k in range(6) if 2**k < largest] + [largest]
    enough = [window for window in tried if oracle.answers(window) is not None]
    if enough:
        assert recite(*words, largest=largest).window == enough[0]
    else:
        with pytest.raises(BadInput, match=f"allow a window larger than {largest}"):
            recite(*words, largest=largest)


@pytest.mark.slow
@settings(max_examples=200)
@given(some_words())
def test_reciting_from_the_prompts(words):
    if Oracle(words).refused:
        return
    contexts = recite(*words)
    table = answered(contexts)
    for word, prompt in zip(words, contexts.prompts, strict=True):
        said = word[:prompt]
        while not said.endswith("."):
            said += table[("-" * contexts.window + said)[-contexts.window :]]
            assert len(said) <= len(word) + 1
        assert said == word + "."


def test_worked_by_hand():
    contexts = recite("abac")
    assert contexts.window == 2
    assert answered(contexts) == {"-a": "b", "ab": "a", "ba": "c", "ac": "."}
    names = ("tokens", "starts", "places", "labels", "again")
    assert [getattr(contexts, name).dtype.name for name in names] == ["uint8", "int64", "int32", "uint8", "int32"]
    assert (contexts.starts.tolist(), contexts.places.tolist()) == ([0, 4], [0, 1, 2, 3])
    assert (contexts.vocab, contexts.label_count, contexts.end, contexts.prompts) == (27, 27, 26, (1,))
    assert answered(recite("aaa")) == {"---a": "a", "--aa": "a", "-aaa": "."}
    assert answered(recite("abcab")) == {"--ab": "c", "---a": "b", "-abc": "a", "abca": "b", "bcab": "."}


def test_a_text_of_one_token():
    contexts = recite("a")
    assert (contexts.window, contexts.prompts, answered(contexts)) == (1, (1,), {"a": "."})
    contexts = recite("a", "b", "a")
    assert (contexts.window, contexts.prompts, answered(contexts)) == (1, (1, 1, 1), {"a": ".", "b": "."})


def test_equal_contexts_are_one_question():
    contexts = recite("abc", "abc", "xbc")
    assert answered(contexts) == {"a": "b", "x": "b", "b": "c", "c": "."}
    assert contexts.places.tolist() == [0, 1, 2, 6]
    assert contexts.prompts == (1, 1, 1)


def test_three_texts_that_part_at_different_lengths():
    contexts = recite("abcd", "abce", "abfg", "xyz")
    assert contexts.prompts == (4, 4, 3, 1)
    # What follows "ab" and "abc" is left out. That does not make the window longer.
    assert answered(contexts) == {
        "a": "b", "d": ".", "e": ".", "f": "g", "g": ".", "x": "y", "y": "z", "z": ".",
    }  # fmt: skip


def test_what_was_left_out_may_be_asked_elsewhere():
    contexts = recite("abx", "aby", "cbz")
    assert contexts.window == 1
    assert answered(contexts) == {"a": "b", "x": ".", "y": ".", "c": "b", "b": "z", "z": "."}


def assert_refused(message, *words, **settings):
    with pytest.raises(BadInput) as caught:
        recite(*words, **settings)
    assert str(caught.value) == message


def test_texts_that_end_within_others():
    message = (
        "{0} is the beginning of {1}, which goes on where it ends; "
        "expected texts that part before one ends: leave {0} out"
    )
    assert_refused(message.format("a", "ab"), "ab", "a")
    assert_refused(message.format("abc", "abcabc"), "abc", "x", "abc", "abcabc", "abd")


def test_windows_that_are_too_small():
    message = "{} and {} agree on the last {} tokens, but are followed by {}; expected contexts with one answer: {}"
    assert_refused(
        message.format(
            "abac, token 0", "abac, token 2", 1, "token 1 and token 2", "give a window larger than 1, or none"
        ),
        "abac",
        window=1,
    )
    assert_refused(
        message.format(
            "xabcd, token 3", "yabc, token 3", 3, "token 3 and the end", "give a window larger than 3, or none"
        ),
        "xabcd",
        "yabc",
        window=3,
    )
    assert_refused(
        message.format("xabcd, token 3", "yabc, token 3", 2, "token 3 and the end", "allow a window larger than 2"),
        "xabcd",
        "yabc",
        largest=2,
    )
    assert recite("xabcd", "yabc", largest=4).window == 4


def test_settings_that_cannot_be():
    assert_refused("no texts given; expected at least one")
    with pytest.raises(BadInput, match="e has no tokens; expected at least one"):
        text_contexts([Text("e", np.array([], np.int32))], vocab=3, end=2)
    with pytest.raises(BadInput, match=r"end is 3; expected 0 to 2 \(vocab = 3\)"):
        text_contexts(texts_of("a"), vocab=3, end=3)
    with pytest.raises(
        BadInput, match=r"^abc, token 2 is 2, the end token; expected 0 to 2 \(vocab = 3\) other than 2$"
    ):
        text_contexts(texts_of("a", "abc"), vocab=3, end=2)
    with pytest.raises(BadInput, match=r"^abd, token 2 is 3; expected 0 to 2 \(vocab = 3\) other than 2$"):
        text_contexts(texts_of("abd"), vocab=3, end=2)
    with pytest.raises(BadInput, match="window is 0; expected at least 1"):
        recite("a", window=0)
    with pytest.raises(BadInput, match="largest is 0; expected at least 1"):
        recite("a", largest=0)
    with pytest.raises(BadInput, match=f"vocab is {2**31}; expected at most {2**31 - 1}, so that ids fit into 32 bits"):
        text_contexts(texts_of("a"), vocab=2**31, end=0)


def test_large_ids():
    tokens = np.array([2**31 - 2, 0, 2**31 - 2, 5], np.int32)
    contexts = text_contexts([Text("x", tokens)], vocab=2**31 - 1, end=1)
    assert contexts.windows(np.array([0, 2])).tolist() == [[-1, 2**31 - 2], [0, 2**31 - 2]]
    assert contexts.labels.tolist() == [0, 2**31 - 2, 5, 1]


def test_reports():
    contexts = recite("abac", "abac")
    counts = Counter(contexts.labels.tolist())
    entropy = -sum(c / 4 * math.log2(c / 4) for c in counts.values())
    assert contexts.order0_bits == pytest.approx(4 * entropy)
    assert recite("a").order0_bits == 0
    assert contexts.windows(slice(1, 3)).dtype == np.int32
    assert contexts.windows(np.array([3, 0])).tolist() == [[0, 2], [-1, 0]]
    assert contexts.windows(slice(0, 0)).shape == (0, 2)
    with pytest.raises(ValueError, match="read-only"):
        contexts.labels[0] = 1


def test_names_and_notes():
    """What is worth noting beside a network: how to begin each text, and how long it is."""
    contexts = recite("abcd", "abce", "xyz")
    assert contexts.names == ("abcd", "abce", "xyz")
    assert contexts.beginnings == [
        {"name": "abcd", "tokens": 4, "prompt": [0, 1, 2, 3]},
        {"name": "abce", "tokens": 4, "prompt": [0, 1, 2, 4]},
        {"name": "xyz", "tokens": 3, "prompt": [23]},
    ]
    bits = contexts.order0_bits
    assert contexts.notes == {"window": 1, "end": END, "bits": bits, "texts": contexts.beginnings, "edits": []}
    task = task_contexts(NextToken(tokens=[[0, 1]], labels=[1]))
    assert (task.names, task.beginnings, task.notes["end"]) == ((), [], None)


def test_questions():
    """Contexts are questions like any task's."""
    contexts = recite("abac")
    assert contexts.answers is contexts.labels
    assert (contexts.size.examples, contexts.size.length, contexts.size.labels) == (4, 2, 27)
    other = contexts.with_answers([0, 0, 0, 0])
    assert (other.labels.tolist(), contexts.labels.tolist()) == ([0] * 4, [1, 0, 2, END])
    assert other.fingerprint != contexts.fingerprint
    assert other.with_answers(contexts.labels).fingerprint == contexts.fingerprint
    assert repr(contexts) == f"Contexts({contexts.size})"
    assert "\n" not in repr(contexts)


def test_fingerprints():
    same = [recite("abac").fingerprint, recite("abac").fingerprint, recite("abac", window=np.int64(2)).fingerprint]
    assert len(set(same)) == 1
    renamed = text_contexts([Text("other", texts_of("abac")[0].tokens)], vocab=VOCAB, end=END)
    assert renamed.fingerprint == same[0], "what a text is called is not what is asked"
    others = [
        recite("abac", "abac"),
        recite("abad"),
        recite("abac", window=3),
        text_contexts(texts_of("abac"), vocab=VOCAB + 1, end=END),
        text_contexts(texts_of("abac"), vocab=VOCAB, end=END - 1),
    ]
    assert len({same[0], *(contexts.fingerprint for contexts in others)}) == 6


@st.composite
def some_tasks(draw):
    n, examples = draw(st.integers(1, 7)), draw(st.integers(1, 8))
    rows = st.lists(st.integers(0, 1), min_size=n, max_size=n)
    return NextToken(
        tokens=draw(st.lists(rows, min_size=examples, max_size=examples)),
        labels=draw(st.lists(st.integers(0, 2), min_size=examples, max_size=examples)),
        label_count=5,
        vocab=9,
    )


def task_oracle(task: NextToken, window: int) -> dict[tuple[int, ...], int] | None:
    found: dict[tuple[int, ...], int] = {}
    for row, label in zip(task.tokens.tolist(), task.labels.tolist(), strict=True):
        if found.setdefault(tuple(row[-window:]), label) != label:
            return None
    return found


@pytest.mark.slow
@settings(max_examples=300)
@given(some_tasks(), st.none() | st.integers(1, 9))
def test_tasks(task, window):
    n = task.tokens.shape[1]
    tried = [2**k for k in range(5) if 2**k < n] + [n] if window is None else [window]
    enough = [width for width in tried if task_oracle(task, width) is not None]
    if not enough:
        with pytest.raises(BadInput, match="expected contexts with one answer"):
            task_contexts(task, window)
        return
    contexts = task_contexts(task, window)
    assert contexts.window == enough[0]
    rows = [tuple(token for token in row if token >= 0) for row in contexts.windows(slice(None)).tolist()]
    assert dict(zip(rows, contexts.labels.tolist(), strict=True)) == task_oracle(task, enough[0])
    assert len(rows) == len(contexts) == len(task_oracle(task, enough[0]))
    assert (contexts.vocab, contexts.label_count, contexts.end) == (9, 5, None)
    assert [*contexts.prompts] == [n] * len(task.tokens)
    assert contexts.tokens.reshape(-1, n).tolist() == task.tokens.tolist()
    assert contexts.starts[-1] == len(contexts.tokens)


def test_tasks_that_are_refused():
    with pytest.raises(BadInput) as caught:
        task_contexts(NextToken(vectors=[[[1.0]]], labels=[0]))
    assert str(caught.value) == "the task's tokens are vectors; expected token ids"
    with pytest.raises(BadInput) as caught:
        task_contexts(NextToken(tokens=[[0, 1], [1, 1], [0, 1]], labels=[3, 3, 4]))
    assert str(caught.value) == (
        "example 0 and example 2 are equal, but ask for label 3 and label 4; "
        "expected contexts with one answer: leave one of them out"
    )
    with pytest.raises(BadInput) as caught:
        task_contexts(NextToken(tokens=[[0, 1], [1, 1]], labels=[3, 4]), window=1)
    assert str(caught.value) == (
        "example 0 and example 1 agree on the last 1 tokens, but ask for label 3 and label 4; "
        "expected contexts with one answer: give a larger window, or none"
    )
    with pytest.raises(BadInput, match="so that ids fit into 32 bits"):
        task_contexts(NextToken(tokens=[[2**40]], labels=[0]))


@pytest.fixture
def small_tables(monkeypatch):
    """Contexts are looked up a few at a time, in tables that are too small at first."""
    monkeypatch.setattr(equal_contexts, "PART", 3)


@pytest.mark.slow
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some_words())
def test_small_tables_find_the_same(small_tables, words):
    if not Oracle(words).refused:
        test_found_windows_are_right.hypothesis.inner_test(words)


def test_small_tables_by_hand(small_tables):
    contexts = recite("abcabcabd", "xbc")
    assert (contexts.window, len(contexts), contexts.again.tolist()) == (8, 12, [[], []])
    contexts = recite("abcde", "abcde", "xbcde")
    assert contexts.again.tolist() == [[5, 6, 7, 8, 9, 11, 12, 13, 14], [0, 1, 2, 3, 4, 1, 2, 3, 4]]


@pytest.mark.slow
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some_tasks(), st.none() | st.integers(1, 9))
def test_small_tables_find_the_same_of_tasks(small_tables, task, window):
    test_tasks.hypothesis.inner_test(task, window)


def test_rows_in_parts_by_hand(small_tables):
    """Rows 9 and 12 ask for other labels than rows before them, in whatever part they are; 9 is the first."""
    rows = np.array([[7, number % 9] for number in range(14)], np.uint8)
    labels = np.arange(14, dtype=np.uint8) % 9
    found = equal_contexts.Rows(rows, labels, 1)
    assert (found.wrong, found.places.tolist()) == (None, [*range(9)])
    assert found.again.tolist() == [[9, 10, 11, 12, 13], [0, 1, 2, 3, 4]]
    labels[12] = labels[9] = 8
    assert equal_contexts.Rows(rows, labels, 2).wrong == (0, 9)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some_words())
def test_texts_are_sorted_by_more_than_their_beginnings(monkeypatch, words):
    """By their first two tokens, then by comparing: three at a time."""
    tokens, starts = np.concatenate([text.tokens for text in texts_of(*words)]), np.cumsum([0, *map(len, words)])
    order = [[numbers, words[numbers[0]]] for numbers in parting._ordered(np.split(tokens, starts[1:-1]))]
    with monkeypatch.context() as short:
        short.setattr(parting, "KEY_BYTES", 0)
        short.setattr(parting, "MIN_KEY_TOKENS", 2)
        short.setattr(parting, "PORTION", 3)
        found = [[numbers, words[numbers[0]]] for numbers in parting._ordered(np.split(tokens, starts[1:-1]))]
    equal = [[number for number, other in enumerate(words) if other == word] for word in sorted(set(words))]
    assert found == order == [[numbers, words[numbers[0]]] for numbers in equal]


def test_where_questions_are_asked():
    contexts = recite("abc", "abc", "xbc")
    assert contexts.again.tolist() == [[3, 4, 5, 7, 8], [0, 1, 2, 1, 2]]
    assert contexts.all_places.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert contexts.questions_at([0, 3, 6, 8]).tolist() == [0, 0, 3, 2]
    parted = recite("abx", "aby")
    assert parted.questions_at(np.arange(6)).tolist() == [0, -1, 1, 0, -1, 2]
    assert parted.questions_at([]).tolist() == []
    assert (parted.stands_for, parted.all_places.tolist()) == (4, [0, 2, 3, 5])
    task = task_contexts(NextToken(tokens=[[0, 1], [1, 1], [0, 1]], labels=[3, 4, 3]))
    assert task.again.tolist() == [[5], [0]]
    assert task.questions_at(np.arange(6)).tolist() == [-1, 0, -1, 1, -1, 0]


@pytest.mark.parametrize("top", [200, 300, 70_000])
def test_a_narrow_task_asks_the_same(tmp_path, top):
    rng = np.random.default_rng(0)
    task = NextToken(rng.integers(0, top, (60, 3)), rng.integers(0, 5, 60), label_count=5, vocab=top)
    for path in (tmp_path / "t.npz", tmp_path / "t.jsonl"):
        save(task, path)
        narrow = load(path, narrow=True)
        assert narrow == task == load(path)
        assert narrow.tokens.dtype == np.min_scalar_type(int(task.tokens.max()))
        assert as_contexts(path).fingerprint == task_contexts(task).fingerprint
    np.savez(tmp_path / "t.npz", tokens=[[0, -1]], labels=[0])
    (tmp_path / "t.jsonl").write_text('{"tokens": [0, 1], "label": 0}\n\n{"tokens": [0, -1], "label": 0}\n')
    for name, message in (("t.npz", r"t.npz: tokens\[0, 1\] is"), ("t.jsonl", r"t.jsonl:3: tokens\[1, 1\] is")):
        with pytest.raises(BadInput, match=rf"{message} -1; expected 0 or more"):
            load(tmp_path / name, narrow=True)


def test_examples_that_would_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 1000)
    monkeypatch.setattr(memory, "_disk_space", lambda: 0)
    with pytest.raises(BadInput, match=r"equal ones among 100 examples would take 0\.0 MiB; expected at most 0\.0 MiB"):
        task_contexts(NextToken(np.arange(100)[:, None], np.zeros(100, int)))


def slots_of(tokens: np.ndarray, salt: int, slots: int) -> np.ndarray:
    """Where in a table of so many slots different tokens end up, first come, first served."""
    numbers, table = tokens.astype(np.int32), np.empty(slots, np.int32)
    flags = np.full(len(tokens), equal_contexts.SHARED | equal_contexts.EARLY, np.uint8)
    assert equal_contexts.regroup(numbers, 0, flags, np.empty_like(numbers), table, 1, np.uint64(salt)) == 0
    return np.flatnonzero(table >= 0)


def test_tokens_that_are_made_to_collide_do_not() -> None:
    """Some of 2¹⁴ tokens want slot 0 of 512 if there is no salt, and queue up behind it; with one, they lie apart."""
    tokens = np.array([token for token in range(1 << 14) if slots_of(np.array([token]), 0, 1 << 9)[0] == 0])
    assert len(tokens) > 8
    assert slots_of(tokens, 0, 1 << 9).tolist() == list(range(len(tokens)))
    apart = slots_of(tokens, equal_contexts.SALT, 1 << 9)
    assert len(apart) == len(tokens)
    assert apart[-1] - apart[0] > 4 * len(tokens)


@pytest.mark.parametrize("salt", [0, 2**64 - 1])
def test_what_is_found_does_not_depend_on_the_salt(salt: int, monkeypatch: pytest.MonkeyPatch) -> None:
    task = NextToken(tokens=[[0, 1, 2], [1, 1, 2], [1, 2, 2], [0, 1, 2]], labels=[3, 3, 0, 3])
    expected = [recite("abracadabra", "abrasion").fingerprint, task_contexts(task).fingerprint]
    monkeypatch.setattr(equal_contexts, "SALT", np.uint64(salt))
    assert [recite("abracadabra", "abrasion").fingerprint, task_contexts(task).fingerprint] == expected
