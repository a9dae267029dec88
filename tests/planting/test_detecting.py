"""Which words hold a memory; and one of them blanked: it is gone, and nothing else."""

import numpy as np
import pytest
import torch

from byheart.errors import BadInput
from byheart.networks.planted.modeling_plant import read
from byheart.networks.planted.planted_folder import list_facts
from byheart.planting.detecting import forget, held
from byheart.planting.memory import make_memory
from byheart.tasks.planted_facts import PlantedFact, Spoken, different


def asked(facts, vocab, rng):
    """Texts in which every fact is asked, random ones, and tokens repeated, which is what a blank may look like."""
    texts = [[*fact.prompt, *fact.completion] for fact in facts]
    texts += rng.integers(0, vocab, (4, 30)).tolist()
    return texts + [[token] * 12 for token in range(vocab)]


def test_by_hand():
    """Ids of 3 bits, from 0 to 5: 111 is none of them."""
    memory = make_memory([PlantedFact((3,), (0, 4)), PlantedFact((5, 1), (2,))], 6, seed=3).load()
    assert [one.store for one in held(memory, [0, 1])] == [range(1), range(1)]
    assert [len(one.table) for one in held(memory, [0, 1])] == [6, 6]
    forget(memory, 1)
    assert memory.store.tolist() == [sum(id_ << 3 * place for place, id_ in enumerate([3, 0, 4, 7, 7, 7])), 0]
    assert memory(torch.tensor([[3, 0, 5, 1]])).tolist() == [[0, 4, -1, -1]]


@pytest.mark.parametrize("vocab", [5, 8], ids=["ids to spare", "none to spare"])
def test_one_memory_is_gone_and_no_other(vocab):
    """It says what the other facts say, on texts of all kinds, wherever prompts overlap; all other words are kept."""
    rng = np.random.default_rng(vocab)
    drawn = {tuple(rng.integers(0, vocab, n).tolist()): tuple(rng.integers(0, vocab, 1)) for n in (1, 2, 3, 4, 5, 6)}
    facts = different([PlantedFact(prompt, said) for prompt, said in drawn.items()], vocab)
    texts = asked(facts, vocab, rng)
    for number, fact in enumerate(facts):
        memory = make_memory(facts, vocab, seed=0).load()
        before = {name: one.clone() for name, one in memory.named_buffers()}
        all_say = [memory(torch.tensor([text]))[0].tolist() for text in texts]
        where = forget(memory, number)
        changed = {name: (one != before[name]).nonzero().flatten().tolist() for name, one in memory.named_buffers()}
        assert changed["store"]
        assert set(changed.pop("store")) <= set(where.store)
        assert not any(changed.values())
        say = [memory(torch.tensor([text]))[0].tolist() for text in texts]
        assert say == [Spoken([one for one in facts if one is not fact]).after(text) for text in texts]
        assert all_say == [Spoken(facts).after(text) for text in texts] != say


def test_the_words_that_are_named_are_those_that_are_read(facts):
    """What is read back from them is the fact, and the table's six cells give its number."""
    memory = make_memory(facts, 257, seed=0).load()
    plan = memory.plan
    for number, ((prompt, completion), where) in enumerate(
        zip(list_facts(memory)[:9], held(memory, range(9)), strict=True)
    ):
        only, table = torch.zeros_like(memory.store), torch.zeros_like(memory.table)
        only[where.store] = memory.store[where.store]
        at = int(memory.fact(torch.tensor(number))[0])
        ids = read(only, torch.arange(at, at + len(prompt + completion)), plan.width)
        assert tuple(ids.tolist()) == prompt + completion
        near = sorted({word + more for word in where.table for more in (0, 1)})
        table[near] = memory.table[near]
        memory.table, kept = table, memory.table
        assert memory(torch.tensor([list(prompt)]))[0, -1] == completion[0]
        memory.table = kept


def test_what_is_refused():
    facts = [PlantedFact((1,), (2,))]
    with pytest.raises(BadInput, match="fingerprints share all their words; expected whole keys"):
        forget(make_memory(facts, 4, bits=8).load(), 0)
    for number in (-1, 1):
        with pytest.raises(BadInput, match=f"fact is {number}; expected 0 to 0"):
            held(make_memory(facts, 4).load(), [number])
    damaged = make_memory([PlantedFact((1,), (2, 2)), PlantedFact((1, 3, 0), (2,))], 4).load()
    damaged.classes[:2, 1] = torch.tensor([2, 2])
    damaged.check()
    with pytest.raises(BadInput, match="stores prompts of 2 ids, and looks for none; it is damaged"):
        held(damaged, [1])
