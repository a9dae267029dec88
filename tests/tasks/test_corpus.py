import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byheart.errors import BadInput
from byheart.tasks.corpus import OTHER, corpus_distribution, entropy_bound, split_words, vocabulary

TEXTS = ["the cat sat. the cat ran.", "the dog sat. the cat sat."]


def test_words():
    assert split_words("") == []
    assert split_words(" \n\t") == []
    assert split_words("don't, x_1=3.5!\nÄ …?") == ["don", "'", "t", ",", "x_1", "=", "3", ".", "5", "!", "Ä", "…", "?"]


def test_vocabulary_keeps_the_most_frequent_and_of_ties_the_first():
    tokens = ["b", "a", "c", "a", "d", "c"]  # a, c twice; b, d once
    assert vocabulary(tokens, 4).words == ("a", "c", "b", OTHER)
    assert vocabulary(tokens, 2).words == ("a", OTHER)
    assert vocabulary(tokens, 1).words == (OTHER,)
    chosen = vocabulary(tokens, 4)
    assert len(chosen) == 4
    assert chosen.other == 3
    encoded = chosen.encode(["d", "a", "new", OTHER, "b"])
    assert encoded.tolist() == [3, 0, 3, 3, 2]
    assert encoded.dtype == np.int64


def test_the_name_of_the_other_token_is_no_word():
    assert vocabulary(["x", OTHER, OTHER], 2).words == ("x", OTHER)
    assert OTHER not in split_words(OTHER)


def test_counts_by_hand():
    """Twelve windows. At the end of a text "sat ." and "ran ." occur once more, with nothing after them."""
    corpus = corpus_distribution(TEXTS, length=2, vocab=7)
    the, stop, cat, sat, ran, dog, other = range(7)
    assert corpus.words == ("the", ".", "cat", "sat", "ran", "dog", OTHER)
    assert corpus.tokens.tolist() == [
        [the, cat],
        [cat, sat],
        [sat, stop],
        [stop, the],
        [cat, ran],
        [the, dog],
        [dog, sat],
    ]
    expected = np.zeros((7, 7), np.int64)
    expected[0, [sat, ran]] = 2, 1
    expected[1, stop] = 2
    expected[2, the] = 2
    expected[3, cat] = 2
    expected[[4, 6], stop] = 1
    expected[5, sat] = 1
    assert corpus.counts.tolist() == expected.tolist()
    assert corpus.counts[:, other].sum() == 0
    assert corpus.probabilities[0, sat] == 2 / 3
    assert corpus.weights.tolist() == [3 / 12, 2 / 12, 2 / 12, 2 / 12, 1 / 12, 1 / 12, 1 / 12]
    assert len(corpus) == 7


def test_the_most_frequent_contexts_are_kept_and_weighed_among_themselves():
    whole = corpus_distribution(TEXTS, length=2, vocab=7)
    few = corpus_distribution(TEXTS, length=2, vocab=7, examples=3)
    assert few.tokens.tolist() == whole.tokens[:3].tolist()
    assert few.counts.tolist() == whole.counts[:3].tolist()
    assert few.weights.tolist() == [3 / 7, 2 / 7, 2 / 7]


def test_windows_do_not_cross_texts():
    apart = corpus_distribution(["a b c", "d e f"], length=2, vocab=7)
    assert apart.tokens.tolist() == [[0, 1], [3, 4]]
    assert len(corpus_distribution(["a b c d e f"], length=2, vocab=7)) == 4
    assert len(corpus_distribution(["a b c", "d", "", "e f"], length=2, vocab=7)) == 1


def test_rare_words_are_one_token():
    corpus = corpus_distribution(["a x a y a z a"], length=1, vocab=2)
    assert corpus.words == ("a", OTHER)
    assert corpus.tokens.tolist() == [[0], [1]]
    assert corpus.counts.tolist() == [[0, 3], [3, 0]]


@given(st.lists(st.text("abc ", max_size=12), min_size=1, max_size=4), st.integers(1, 3), st.integers(1, 4))
def test_counts_are_those_of_a_plain_loop(texts, length, vocab):
    parts = [split_words(text) for text in texts]
    try:
        corpus = corpus_distribution(texts, length=length, vocab=vocab)
    except BadInput:
        assert max(map(len, parts)) <= length or len({word for part in parts for word in part}) + 1 < vocab
        return
    chosen = vocabulary([word for part in parts for word in part], vocab)
    counted = {}
    for part in parts:
        ids = chosen.encode(part).tolist()
        for end in range(length, len(ids)):
            counted.setdefault(tuple(ids[end - length : end]), []).append(ids[end])
    ordered = sorted(counted.items(), key=lambda item: -len(item[1]))
    assert corpus.tokens.tolist() == [list(context) for context, _ in ordered]
    assert corpus.counts.tolist() == [np.bincount(next_, minlength=vocab).tolist() for _, next_ in ordered]
    assert np.abs(corpus.probabilities.sum(axis=1) - 1).max() < 1e-12
    assert corpus.weights.sum() == pytest.approx(1, abs=1e-12)


def test_a_corpus_is_a_task():
    corpus = corpus_distribution(TEXTS, length=2, vocab=7)
    task = corpus.task()
    assert (task.size.examples, task.size.length, task.size.vocab) == (7, 2, 7)
    assert task.weights.tolist() == corpus.weights.tolist()
    assert task.probabilities.tolist() == corpus.probabilities.tolist()
    with pytest.raises(ValueError, match="read-only"):
        corpus.tokens[0, 0] = 1


def test_entropy_bound_by_hand():
    corpus = corpus_distribution(TEXTS, length=2, vocab=7)
    # Only after "the cat", a quarter of all, there is a choice: 2/3 and 1/3.
    expected = 0.25 * (np.log(3) - 2 / 3 * np.log(2))
    assert entropy_bound(corpus.probabilities, corpus.weights) == pytest.approx(expected, rel=1e-14)
    assert entropy_bound(np.full((3, 8), 1 / 8), [0.5, 0.25, 0.25]) == pytest.approx(np.log(8), rel=1e-14)
    assert entropy_bound([[0.0, 1.0]], [1.0]) == 0


def test_no_prediction_has_a_smaller_loss():
    corpus = corpus_distribution(TEXTS, length=1, vocab=4)
    bound = entropy_bound(corpus.probabilities, corpus.weights)
    rng = np.random.default_rng(0)

    def loss(predicted):
        return -corpus.weights @ (corpus.probabilities * np.log(predicted)).sum(axis=1)

    assert all(loss(rng.dirichlet(np.ones(4), len(corpus))) > bound for _ in range(100))
    nearly = (corpus.probabilities + 1e-9) / (1 + 4e-9)
    assert bound < loss(nearly) < bound + 1e-7


def test_refusals():
    def refused(message, *arguments, **settings):
        with pytest.raises(BadInput) as caught:
            corpus_distribution(*arguments, **settings)
        assert str(caught.value) == message

    refused(
        "examples is 8; expected at most 7, the number of contexts of length 2 in the texts",
        TEXTS,
        length=2,
        vocab=7,
        examples=8,
    )
    refused(
        "the longest text has 8 words; expected at least 9, a context of length 8 and the next word",
        TEXTS,
        length=8,
        vocab=7,
    )
    refused(
        "the longest text has 0 words; expected at least 3, a context of length 2 and the next word",
        [],
        length=2,
        vocab=1,
    )
    refused(
        "vocab is 8; expected at most 7: the texts have 6 different words, and one id is for others",
        TEXTS,
        length=2,
        vocab=8,
    )
    refused("length is 0; expected at least 1", TEXTS, length=0, vocab=7)
    refused("examples is 0; expected at least 1", TEXTS, length=2, vocab=7, examples=0)
    with pytest.raises(BadInput, match="weights"):
        entropy_bound([[0.5, 0.5]], [0.5])
