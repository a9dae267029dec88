"""Compile and certify a knowledge base of words, and count parameters per fact. A few minutes.

    python benchmarks/facts.py --facts 100000

Subjects (a first and a last name), relations and objects are words of syllables. Every subject has every relation once,
and the object of each pair is drawn at random, so a fact is log₂(objects) bits that nothing else predicts. The facts
are tokenized in three ways: one token per byte, byte pairs trained on the facts, and one token per word.
"""

import argparse
import math
from collections.abc import Iterator
from itertools import islice, product

import numpy as np
from checking import certified
from tables import OUT, table

from byheart import Facts
from byheart.compiler import compile

RELATIONS, OBJECTS = 10, 1000
SYLLABLES = [consonant + vowel for consonant, vowel in product("bdfgklmnprstvz", "aeiou")]


def words(count: int, syllables: int) -> list[str]:
    """Return ``count`` different words of ``syllables`` syllables."""
    if count > len(SYLLABLES) ** syllables:
        raise ValueError(f"there are {len(SYLLABLES) ** syllables} words of {syllables} syllables; got {count}")
    digits = (np.unravel_index(number, (len(SYLLABLES),) * syllables) for number in range(count))
    return ["".join(SYLLABLES[digit] for digit in word) for word in digits]


Known = list[tuple[str, str, str, str]]
"""Rows of first name, last name, relation and object."""


def knowledge(facts: int, seed: int = 0) -> Known:
    """Draw ``facts`` facts: all relations of the first subject, then of the next, and so on."""
    rng = np.random.default_rng(seed)
    names = words(math.isqrt(facts // RELATIONS) + 1, 2)
    relations, objects = (words(count, 2) for count in (RELATIONS, OBJECTS))
    asked = islice(product(names, names, relations), facts)
    drawn = rng.integers(OBJECTS, size=facts).tolist()
    return [(*asks, objects[number]) for asks, number in zip(asked, drawn, strict=True)]


def as_tokens(known: Known) -> Facts:
    """Make every word a token. Ids follow the order of first occurrence, separately for each place in a fact."""
    ids: dict[tuple[int, str], int] = {}
    numbered = [[ids.setdefault((place, word), len(ids)) for place, word in enumerate(row)] for row in known]
    return Facts([(row[:-1], row[-1:]) for row in numbered])


def ways(known: Known) -> Iterator[tuple[str, Facts, dict[str, str]]]:
    """Yield the facts in each tokenization: its name, the facts, and the compiler's settings."""
    texts = Facts([(f"{first} {last} {relation}: ", object_) for first, last, relation, object_ in known])
    yield "bytes", texts, {}
    yield "bpe", texts, {"tokenizer": "bpe"}
    yield "words", as_tokens(known), {}


def main() -> None:
    """Compile, save, load and certify the facts in each tokenization, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=100_000, help="number of facts (default: 100,000)")
    parser.add_argument("--tiny", action="store_true", help="compile 300 facts, to see that everything runs")
    options = parser.parse_args()
    known = knowledge(300 if options.tiny else options.facts)
    columns = (
        "questions",
        "window",
        "parameters",
        "parameters/fact",
        "bits/parameter",
        "compiled in",
        "certified",
        "checked in",
    )
    title = f"{len(known):,} facts of {math.log2(OBJECTS):.2f} bits: {RELATIONS} relations, {OBJECTS:,} objects"
    rows = table(title, "tokens", *columns)
    for name, facts, settings in ways(known):
        built = compile(facts, **settings)  # type: ignore[arg-type]
        certificate, seconds = certified(built, facts)
        questions, parameters = built.questions.size.examples, built.account.dense
        numbers = f"{questions:,}", f"{built.network.window}", f"{parameters:,}", f"{parameters / len(facts):.2f}"
        bits = len(facts) * math.log2(OBJECTS) / parameters
        verdict = "all" if certificate.certified else "NOT CERTIFIED"
        OUT.print(f"{name}: {len(facts):,} facts, {verdict}", style="dim")
        rows.add_row(name, *numbers, f"{bits:.2f}", f"{built.seconds:.0f} s", verdict, f"{seconds:.0f} s")
    OUT.print(rows)


if __name__ == "__main__":
    main()
