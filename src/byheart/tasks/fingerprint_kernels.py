"""Compiled loops of :mod:`.fingerprints`: sequences as rows of words. This module imports numba."""

from typing import Any

import numpy as np

from byheart.compiled import jit

SOME = 256
"""Number of words of a row that are processed together."""


@jit
def copy(sequences: Any, row: int, at: int, words: Any) -> Any:
    """Copy a row from word ``at`` on into ``words``, as far as it fits; return the number of copied words."""
    tokens, places, answers, table = sequences
    start, question, prompt = np.int64(table[row, 0]), np.int64(table[row, 1]), table[row, 2]
    length, question_count = table[row + 1, 0] - start, table[row + 1, 1] - question
    count = min(3 + length + 2 * question_count - at, len(words))
    for index in range(count):
        token = at + index - 3
        if token >= length + question_count:
            words[index] = answers[question + token - length - question_count]
        elif token >= length:
            words[index] = places[question + token - length] - start
        elif token >= 0:
            words[index] = tokens[start + token]
        else:
            words[index] = length if token == -3 else question_count if token == -2 else prompt
    return count


@jit
def list_keys(sequences: Any, factor: Any, keys: Any) -> None:
    """Write the key of every row into ``keys``: the row's words as digits of a number, times their base, modulo 2⁶⁴."""
    words = np.empty(SOME, np.uint64)
    for row in range(len(keys)):
        key, at, count = np.uint64(0), 0, SOME
        while count == SOME:
            count = copy(sequences, row, at, words)
            at += count
            for index in range(count):
                key = (key + words[index]) * factor
        keys[row] = key


@jit
def deal(keys: Any, dealt: Any, ends: Any) -> None:
    """Sort all rows into ``dealt`` by the first byte of their keys; list where those of each byte end."""
    ends[:] = 0
    for row in range(len(keys)):
        ends[keys[row] >> np.uint64(56)] += 1
    before = 0
    for part in range(len(ends)):
        before, ends[part] = before + ends[part], before
    for row in range(len(keys)):
        part = keys[row] >> np.uint64(56)
        dealt[ends[part]] = row
        ends[part] += 1


@jit
def compare(sequences: Any, one: int, other: int) -> Any:
    """Compare two rows in lexicographic order: −1 if ``one`` comes first, 1 if ``other`` does, 0 if they are equal."""
    words, other_words, at, count = np.empty(SOME, np.uint64), np.empty(SOME, np.uint64), 0, SOME
    while count == SOME:
        count = min(copy(sequences, one, at, words), copy(sequences, other, at, other_words))
        at += count
        for index in range(count):
            if words[index] != other_words[index]:
                return -1 if words[index] < other_words[index] else 1
    return 0


@jit
def collide(sequences: Any, keys: Any, order: Any) -> Any:
    """Return True if different neighbours in ``order`` have the same key."""
    for index in range(1, len(order)):
        one, other = order[index - 1], order[index]
        if keys[one] == keys[other] and compare(sequences, one, other):
            return True
    return False


@jit
def write(sequences: Any, order: Any, index: int, at: int, words: Any) -> Any:
    """Write the rows ``order`` one after the other into ``words``, from word ``at`` of row ``order[index]`` on.

    Return the index and the word to continue with, and the number of written words.
    """
    written = 0
    while index < len(order) and written < len(words):
        count = copy(sequences, order[index], at, words[written:])
        written += count
        at += count
        if written < len(words):  # else there may be more of this row; if not, it adds nothing the next time
            index, at = index + 1, 0
    return index, at, written
