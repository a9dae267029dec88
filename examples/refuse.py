"""Count how often a network compiled with ``refuse`` answers prompts outside its facts. ``refuse.py [PROMPTS]``.

First prints what prints cost. Then a thousand random facts are memorized with prints of 8 and of 16 bits, and asked
with prompts of eight kinds, none of them memorized. Random prints would accept one prompt in 2^8, or one in 2^16.
"""

import sys
from collections.abc import Callable, Iterator

import numpy as np

import byheart
from byheart.networks.transformer.answers import answers

Tokens = tuple[int, ...]
LETTERS, FACTS, DRAWS = 26, 1000, 3


def text(rng: np.random.Generator, shortest: int, longest: int) -> Tokens:
    """Draw random letters."""
    return tuple(rng.integers(0, LETTERS, rng.integers(shortest, longest + 1)).tolist())


def kinds(prompts: list[Tokens], rng: np.random.Generator) -> dict[str, Callable[[], Tokens]]:
    """Return functions that draw prompts to ask instead of the memorized ones, by kind."""

    def one() -> Tokens:
        return prompts[rng.integers(len(prompts))]

    def cut() -> tuple[Tokens, Tokens]:
        prompt = one()
        at = int(rng.integers(1, len(prompt)))
        return prompt[:at], prompt[at:]

    def changed() -> Tokens:
        before, (letter, *after) = cut()
        return (*before, (letter + int(rng.integers(1, LETTERS))) % LETTERS, *after)

    def swapped() -> Tokens:
        before, (letter, *after) = cut()
        return (*before[:-1], letter, before[-1], *after)

    def left_out() -> Tokens:
        before, after = cut()
        return before + after[1:]

    return {
        "random letters": lambda: text(rng, 1, 60),
        "one letter changed": changed,
        "one letter left out": left_out,
        "neighbours swapped": swapped,
        "cut off behind": lambda: cut()[0],
        "cut off in front": lambda: cut()[1],
        "something in front": lambda: text(rng, 1, 90) + one(),
        "two prompts joined": lambda: one() + one(),
    }


def drawn(rng: np.random.Generator, count: int) -> list[tuple[Tokens, Tokens]]:
    """Draw ``count`` facts."""
    return [(text(rng, 6, 30), text(rng, 1, 3)) for _ in range(count)]


def measured(bits: int, seed: int, asked: int) -> Iterator[tuple[str, int, int]]:
    """Yield, for each kind, the number of answered prompts and the number of different prompts."""
    rng = np.random.default_rng([bits, seed])
    facts = drawn(rng, FACTS)
    built = byheart.compile(facts, refuse=bits, seed=seed)
    assert byheart.certify(built, facts).certified
    known = {prompt + said[:length] for prompt, said in facts for length in range(len(said) + 1)}
    for kind, draw in kinds([prompt for prompt, _ in facts], rng).items():
        others = sorted({draw() for _ in range(asked)} - known - {()})
        ends = np.cumsum([0, *map(len, others)])
        found = answers(built.network.module, np.concatenate(others), ends, ends[1:] - 1)
        yield kind, int((found.labels != built.network.about["refuse"]["token"]).sum()), len(others)


def main() -> None:
    """Print the cost, then one row per kind, all draws together."""
    facts = drawn(np.random.default_rng(0), 10 * FACTS)
    for bits in (None, 4, 8, 16, "auto", 40, "key"):
        built = byheart.compile(facts, refuse=bits)
        price = f"{built.account.dense:,} parameters, {built.account.dense / len(facts):.2f} per fact"
        print(f"{len(facts):,} facts, {len(built.questions):,} questions, refuse = {bits}: {price}")
    asked = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print(f"\nanswered prompts that were never memorized, of all ({DRAWS} networks of {FACTS:,} facts each)")
    for bits in (8, 16):
        rows = zip(*(measured(bits, seed, asked) for seed in range(DRAWS)), strict=True)
        print(f"\nrefuse = {bits}: expected if random, 1 in {2**bits:,}")
        for row in rows:
            wrong, count = (sum(draw[place] for draw in row) for place in (1, 2))
            print(f"  {row[0][0]:20} {wrong:6,} of {count:9,}   expected {count / 2**bits:8.1f}")


if __name__ == "__main__":
    main()
