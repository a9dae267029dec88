"""A knowledge base of words, compiled and certified: parameters a fact. About ten minutes.

    python benchmarks/facts.py --facts 100000

Subjects, relations and objects are words of syllables, all different; every subject has every relation once, and the
object of each such pair is drawn at random. So a fact is log₂(objects) bits that nothing else tells. There are three
ways to write the facts down: every word a token, byte pairs trained on the facts, and every byte a token.
"""

import argparse
import math
from collections.abc import Iterator
from itertools import product

import numpy as np
from checking import certified
from tables import OUT, table

from byheart import Facts
from byheart.constructions.reciting import compile

RELATIONS, OBJECTS = 10, 1000
SYLLABLES = [consonant + vowel for consonant, vowel in product("bdfgklmnprstvz", "aeiou")]


def words(count: int, syllables: int) -> list[str]:
    """So many different words of so many syllables."""
    if count > len(SYLLABLES) ** syllables:
        raise ValueError(f"there are {len(SYLLABLES) ** syllables} words of {syllables} syllables; got {count}")
    digits = (np.unravel_index(number, (len(SYLLABLES),) * syllables) for number in range(count))
    return ["".join(SYLLABLES[digit] for digit in word) for word in digits]


def knowledge(facts: int, seed: int = 0) -> list[tuple[str, str, str]]:
    """Subject, relation and object of so many facts, a multiple of the number of relations."""
    rng = np.random.default_rng(seed)
    subjects = words(facts // RELATIONS, 4)
    relations, objects = (words(count, 2) for count in (RELATIONS, OBJECTS))
    drawn = iter(rng.integers(OBJECTS, size=facts).tolist())
    return [(subject, relation, objects[next(drawn)]) for subject in subjects for relation in relations]


def as_tokens(triples: list[tuple[str, str, str]]) -> Facts:
    """Every word a token: ids in the order in which words turn up, subjects apart from objects."""
    ids: dict[tuple[int, str], int] = {}
    numbered = [[ids.setdefault((place, word), len(ids)) for place, word in enumerate(triple)] for triple in triples]
    return Facts([([subject, relation], [object_]) for subject, relation, object_ in numbered])


def ways(triples: list[tuple[str, str, str]]) -> Iterator[tuple[str, Facts, dict[str, str]]]:
    """The same facts in different tokens."""
    texts = Facts([(f"{subject} {relation}: ", object_) for subject, relation, object_ in triples])
    yield "words", as_tokens(triples), {}
    yield "bpe", texts, {"tokenizer": "bpe"}
    yield "bytes", texts, {}


def main() -> None:
    """Compile, save, load, certify, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=100_000, help="how many (default: 100,000)")
    parser.add_argument("--tiny", action="store_true", help="300 facts, to see that everything runs")
    options = parser.parse_args()
    triples = knowledge(300 if options.tiny else options.facts)
    columns = (
        "questions",
        "window",
        "parameters",
        "a fact",
        "bits/parameter",
        "compiled in",
        "certified",
        "checked in",
    )
    title = f"{len(triples):,} facts of {math.log2(OBJECTS):.2f} bits: {RELATIONS} relations, {OBJECTS:,} objects"
    rows = table(title, "tokens", *columns)
    for name, facts, settings in ways(triples):
        built = compile(facts, **settings)  # type: ignore[arg-type]
        certificate, seconds = certified(built, facts)
        questions, parameters = built.questions.size.examples, built.account.dense
        numbers = f"{questions:,}", f"{built.network.window}", f"{parameters:,}", f"{parameters / len(facts):.2f}"
        bits = len(facts) * math.log2(OBJECTS) / parameters
        verdict = "all" if certificate.certified else "NOT CERTIFIED"
        rows.add_row(name, *numbers, f"{bits:.2f}", f"{built.seconds:.0f} s", verdict, f"{seconds:.0f} s")
    OUT.print(rows)


if __name__ == "__main__":
    main()
