"""Large vocabularies and few tokens a question: places would follow from one another, so the hash is stirred.

Everything here is integers from seeds: how many attempts a task takes is the same on every machine.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from byheart import certify, networks
from byheart.compiler import Recipe, compile, layouts
from byheart.compiler.layouts import CompilerSettings, Precision, Resources, Unsolvable
from byheart.compiler.rectangular import front as fronts
from byheart.compiler.rectangular import recipe as recipes
from byheart.compiler.rectangular.attempt import attempt, planned_spec
from byheart.compiler.rectangular.dimensions import WORDS
from byheart.compiler.rectangular.recipe import first_recipe
from byheart.constructions.built import Built
from byheart.errors import BadInput
from byheart.tasks import NextToken
from byheart.tasks.questions import as_contexts
from byheart.tasks.tokenizers import Bytes
from byheart.tasks.windows import task_contexts

LABELS = 100
MOST_ATTEMPTS = 4
"""Before hashes were stirred these tasks took 13 attempts or more, the last with two codes a token or three."""


def facts(subjects: int, relations: int, seed: int = 0) -> NextToken:
    """Every relation of every subject: two tokens a question."""
    asked = [(subject, subjects + relation) for subject in range(subjects) for relation in range(relations)]
    return answered(np.array(asked), subjects + relations, seed)


def drawn(examples: int, length: int, vocab: int, seed: int = 0) -> NextToken:
    """Different random sequences."""
    rng = np.random.default_rng(seed)
    different = np.unique(rng.integers(0, vocab, (2 * examples, length)), axis=0)
    return answered(rng.permutation(different)[:examples], vocab, seed)


def answered(tokens: np.ndarray, vocab: int, seed: int) -> NextToken:
    labels = np.random.default_rng([seed, 1]).integers(0, LABELS, len(tokens))
    return NextToken(tokens=tokens, labels=labels, vocab=vocab)


SHAPES = {
    "200 subjects, 10 relations": facts(200, 10),
    "1000 subjects, 2 relations": facts(1000, 2),
    "one token of 2000": answered(np.arange(2000)[:, None], 2000, 0),
    "one token of 50000": drawn(2000, 1, 50_000),
    "two tokens of 50000": drawn(2000, 2, 50_000),
}


def sizes_of(built: Built) -> recipes.TableSizes:
    return Recipe.from_json(built.network.about["recipe"]).sizes


@pytest.mark.parametrize("shape", SHAPES)
def test_few_attempts(shape: str, tmp_path: Path) -> None:
    task = SHAPES[shape]
    built = compile(task)
    sizes = sizes_of(built)
    assert built.chosen["attempts"] <= MOST_ATTEMPTS
    assert (sizes.stirred, sizes.code_features) == (True, 1)
    built.save(tmp_path / "net")
    certificate = certify(networks.load(tmp_path / "net"), built.questions)
    assert (certificate.certified, certificate.checked) == (True, 2000)


@pytest.mark.parametrize("form", [(name, word) for name, words in WORDS.items() for word in words], ids=str)
def test_every_format(form: tuple[Precision, int]) -> None:
    built = compile(answered(np.arange(700)[:, None], 700, 0), settings=CompilerSettings(*form))
    assert sizes_of(built).stirred
    assert certify(built.network, built.questions).certified


def test_longer_windows() -> None:
    """Two layers as it is: the states are others, and nothing is added."""
    contexts = task_contexts(drawn(400, 12, 30), 12)
    recipe = first_recipe(contexts, CompilerSettings())
    stirred = replace(recipe, sizes=replace(recipe.sizes, stirred=True))
    assert certify(attempt(stirred, contexts, Resources()).network, contexts).certified


def test_without_stirring_it_takes_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: draws alone, one code a token."""
    monkeypatch.setattr(recipes, "next_sizes", lambda sizes, *_: sizes)
    monkeypatch.setattr(layouts, "ATTEMPTS", 2 * MOST_ATTEMPTS)
    with pytest.raises(BadInput, match="no table was found in 8 attempts"):
        compile(SHAPES["one token of 50000"])


def test_what_needs_none_has_none() -> None:
    """Four tokens a question, and more: as it was, draw by draw."""
    for seed in range(3):
        sizes = sizes_of(compile(drawn(2000, 4, 256, seed), window=4, seed=seed))
        assert (sizes.stirred, sizes.code_features) == (False, 1)


def test_hopeless_places_are_counted_not_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is eliminated for a draw that counting is enough for; what counting lets through may still fail."""
    contexts = task_contexts(SHAPES["one token of 2000"], 1)
    recipe = first_recipe(contexts, CompilerSettings())
    monkeypatch.setattr("byheart.constructions.gadgets.parities.reduce_band", None)
    with pytest.raises(Unsolvable, match="equations of a bit plane depend on others") as failed:
        attempt(recipe, contexts, Resources())
    assert failed.value.dependent > 6
    stirred = replace(recipe, sizes=replace(recipe.sizes, stirred=True))
    with pytest.raises(TypeError, match="'NoneType' object is not callable"):
        attempt(stirred, contexts, Resources())


def test_plans_know() -> None:
    contexts = task_contexts(SHAPES["one token of 2000"], 1)
    whole, sample = (
        {layer.name for layer in planned_spec(contexts, CompilerSettings(), times=t).sublayers} for t in (1, 1.5)
    )
    assert "hash_1" in whole
    assert "hash_1" not in sample, "places of a sample are not counted"


@pytest.mark.parametrize("stirred", [1, "yes", None])
def test_recipes_say_yes_or_no(stirred: object) -> None:
    recipe = first_recipe(task_contexts(facts(3, 2), 2), CompilerSettings())
    recipe.check(labels=LABELS, parameters=10_000)
    said = {**recipe.as_json(), "sizes": {**recipe.as_json()["sizes"], "stirred": stirred}}
    with pytest.raises(BadInput, match="is not the recipe of this network"):
        Recipe.from_json(said).check(labels=LABELS, parameters=10_000)


def test_older_recipes_are_not_stirred() -> None:
    recipe = first_recipe(task_contexts(facts(3, 2), 2), CompilerSettings())
    said = recipe.as_json()
    del said["sizes"]["stirred"]
    assert Recipe.from_json(said) == recipe


def test_many_questions_near_beginnings_are_stirred_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In shards, if more pairs than a few would be read from the same places; with more states if shards are many."""
    rng = np.random.default_rng(0)
    texts = {f"{number}": bytes(rng.integers(0, 4, 40, dtype=np.uint8)) for number in range(20)}
    contexts = as_contexts(texts, tokenizer=Bytes(), window=16)
    plain = [first_recipe(contexts, CompilerSettings(shards=count)).sizes for count in (1, 2)]
    assert not plain[0].stirred
    assert not plain[1].stirred
    reach, states = 8, fronts.STATE**fronts.STATES
    near = int((contexts.places - contexts.starts[contexts.places // 40] < reach).sum())
    expected = fronts.alike(plain[1], contexts.window, contexts.starts, contexts.places)
    assert expected == near**2 / (2 * states)
    monkeypatch.setattr(recipes, "MOST_ALIKE", expected / 2)
    assert not first_recipe(contexts, CompilerSettings(shards=1)).sizes.stirred
    stirred = first_recipe(contexts, CompilerSettings(shards=2)).sizes
    assert stirred == replace(plain[1], stirred=True)
    assert len(fronts.state_moduli(stirred)) == 5
    monkeypatch.setattr(fronts, "MANY_SHARDS", 2)
    assert len(fronts.state_moduli(stirred)) == 7
    built = compile(texts, shards=2, window=16)
    assert certify(built, texts).certified
