"""Memories say what facts say, in both modes, and nothing else."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from byheart.certificates.judges.planted import padded, surplus_of, unsaid
from byheart.errors import BadInput
from byheart.networks.planted.modeling_plant import PRIME, MemoryPlan, hashes, places, read
from byheart.networks.planted.planted_folder import PlantedMemory, list_facts
from byheart.planting.memory import make_memory, pack, size_for, solve
from byheart.tasks.planted_facts import PlantedFact, Spoken, different

BITS = (None, 44)


@pytest.mark.parametrize("bits", BITS)
@settings(max_examples=25)
@given(data=st.data())
def test_a_memory_says_what_the_facts_say(bits, data):
    """Overlapping prompts, texts that contain them, and a text of which a part was read before."""
    vocab = data.draw(st.integers(2, 4))
    words = st.lists(st.integers(0, vocab - 1), min_size=1, max_size=4).map(tuple)
    drawn = data.draw(st.lists(st.tuples(words, words), min_size=1, max_size=8))
    try:
        facts = different([PlantedFact(*pair) for pair in drawn], vocab)
    except BadInput:
        return
    text = data.draw(st.lists(st.integers(-1, vocab - 1), min_size=1, max_size=40))
    memory = make_memory(facts, vocab, bits=bits, seed=data.draw(st.integers(0, 9))).load()
    expected = Spoken(facts).after(text)
    assert memory(torch.tensor([text]))[0].tolist() == expected
    first = data.draw(st.integers(0, len(text) - 1))
    assert memory(torch.tensor([text, text]), first).tolist() == [expected[first:]] * 2


def test_by_hand():
    """Two facts of two ids: every number of the memory is what its definition gives."""
    facts = different([PlantedFact((5, 1), (2,)), PlantedFact((3,), (0, 4))], 6)
    memory = make_memory(facts, 6, seed=3)
    assert facts == [PlantedFact((3,), (0, 4)), PlantedFact((5, 1), (2,))]
    plan, tensors = memory.plan, memory.tensors
    assert (plan.mode, plan.facts, plan.longest, plan.lengths, plan.says, plan.bits, plan.store) == (
        *("whole", 2, 2, 2, 2, 1, 6),
    )
    assert tensors["classes"].T.tolist() == [[1, 2, 0, 0], [2, 1, 1, 3]]
    ids = sum(number << 3 * place for place, number in enumerate([3, 0, 4, 5, 1, 2]))
    assert tensors["store"].tolist() == [ids, 0]
    assert tensors["ends"].tolist() == [0b001010, 0], "prompts end with 1 and 3"
    a, s = tensors["factors"].tolist(), tensors["shifts"].tolist()
    for number, (length, window) in enumerate([(1, [3]), (2, [1, 5])]):
        h = [(sum(a[i][d] * (one + 1) for d, one in enumerate(window)) + s[i][length - 1]) % PRIME for i in range(3)]
        start = h[0] * (plan.cells - plan.band + 1) >> 31
        value = 0
        for i in range(6):
            cell = start + (h[1 + i % 2] >> 10 * (i // 2)) % plan.band
            value ^= tensors["table"].view(np.uint32)[cell // 32].item() >> cell % 32 & 1
        assert value == number, "a table of numbers of one bit"


@pytest.mark.parametrize("bits", BITS)
def test_every_fact_is_said_and_near_misses_are_not(bits, facts):
    memory = make_memory(facts, 257, bits=bits, seed=1).load()
    assert unsaid(memory, facts) == (0, None)
    texts = []
    for fact in facts:
        for place in range(len(fact.prompt)):
            texts.append(list(fact.prompt + fact.completion))
            texts[-1][place] = (texts[-1][place] + 1) % 256
    ids, there = padded(texts)
    said = memory(ids.masked_fill(~there, -1))[there].tolist()
    assert said == [token for text in texts for token in Spoken(facts).after(text)]


@pytest.mark.parametrize("bits", [None, 30])
def test_a_hidden_fact_is_seen(bits, facts):
    """A fact more, whose prompt is as long and ends like another, in a memory that says it holds one less."""
    model = facts[-1]
    prompt = ((model.prompt[0] + 1) % 256, *model.prompt[1:])
    assert prompt not in {fact.prompt for fact in facts}
    every = different([*facts, PlantedFact(prompt, (7,) * len(model.completion))], 257)
    memory = make_memory(every, 257, bits=bits, seed=1)
    assert surplus_of(every, memory.load()) == ""
    assert surplus_of(facts, memory.load())
    if bits:
        denied = PlantedMemory(replace(memory.plan, facts=len(facts)), memory.tensors).load()
        assert unsaid(denied, facts) == (0, None)
        assert "these facts alone" in surplus_of(facts, denied)


@pytest.mark.parametrize("name", ["table", "answers", "factors", "shifts", "steps", "ends"])
def test_no_number_of_fingerprints_is_free(name, facts):
    """Any bit changed in a cell, a hash or an end: some fact is not said, or the memory is not these facts' alone."""
    memory = make_memory(facts, 257, bits=30, seed=1)
    assert surplus_of(facts, memory.load()) == ""
    sizes = {"table": memory.plan.cells * 30, "answers": memory.plan.answers * 10, "ends": 257}
    rng = np.random.default_rng(0)
    for _ in range(5):
        words = memory.tensors[name].copy()
        bit = int(rng.integers(sizes.get(name, 32 * words.size)))
        words.reshape(-1).view(np.uint32)[bit // 32] ^= np.uint32(1 << bit % 32)
        try:
            changed = PlantedMemory(memory.plan, memory.tensors | {name: words}).load()
        except BadInput:
            continue
        assert surplus_of(facts, changed)


def test_whole_keys_can_be_listed(facts):
    assert list_facts(make_memory(facts, 257).load()) == [(one.prompt, one.completion) for one in facts]
    with pytest.raises(BadInput, match="cannot be listed"):
        list_facts(make_memory(facts, 257, bits=20).load())


@pytest.mark.parametrize("bits", [6, 8])
def test_fingerprints_fire_falsely_about_as_often_as_promised(bits):
    """Measured over all windows of random ids that end with a token with which some prompt ends: here, all."""
    rng = np.random.default_rng(bits)
    facts = different([PlantedFact(tuple(rng.integers(0, 16, 8).tolist()), (0,)) for _ in range(400)], 16)
    memory = make_memory(facts, 16, bits=bits, seed=5).load()
    text = rng.integers(0, 16, (40, 2000))
    fired = (memory(torch.from_numpy(text)) >= 0).sum().item()
    planted = sum(token >= 0 for row in text[:4].tolist() for token in Spoken(facts).after(row))
    windows = 40 * (2000 - 7)
    assert planted <= 1
    assert abs(fired - windows / 2**bits) < 6 * (windows / 2**bits) ** 0.5


def test_whole_keys_never_fire_falsely():
    rng = np.random.default_rng(0)
    facts = different([PlantedFact(tuple(rng.integers(0, 16, 8).tolist()), (0,)) for _ in range(400)], 16)
    text = rng.integers(0, 16, (10, 2000))
    found = make_memory(facts, 16, seed=5).load()(torch.from_numpy(text)).tolist()
    assert found == [Spoken(facts).after(row) for row in text.tolist()]


@pytest.mark.parametrize("bits", BITS)
def test_every_bit_counts(bits, facts):
    """One bit of a cell that a fact reads, or of its ids, changed: found out."""
    memory = make_memory(facts, 257, bits=bits, seed=1)
    plan, tensors = memory.plan, memory.tensors
    length = len(facts[7].prompt)
    which = tensors["lengths"].tolist().index(length)
    shift = torch.from_numpy(tensors["shifts"][:, which : which + 1])
    windows = torch.tensor([facts[7].prompt[::-1]])
    h = hashes(windows, torch.from_numpy(tensors["factors"][:, :length]), shift, torch.tensor([length]))
    cells = places(h[:3, 0, 0], plan.cells, plan.band).tolist()
    cell = next(one for one in cells if cells.count(one) % 2)
    changed = {"table": cell * plan.bits}
    if bits is None:
        changed["store"] = plan.width * sum(len(one.prompt + one.completion) for one in facts[:7])
    for name, bit in changed.items():
        words = tensors[name].copy()
        words.view(np.uint32)[bit // 32] ^= np.uint32(1 << bit % 32)
        wrong, example = unsaid(PlantedMemory(plan, tensors | {name: words}).load(), facts)
        assert wrong >= len(facts[7].completion)
        assert example is not None


@pytest.mark.parametrize("width", [1, 5, 16, 31, 32, 40, 62])
def test_what_is_packed_can_be_read(width):
    values = np.random.default_rng(width).integers(0, 1 << width, 100)
    assert read(torch.from_numpy(pack(values, width)), torch.arange(100), width).tolist() == values.tolist()


def test_a_table_that_no_cells_solve_is_refused():
    h = np.zeros((3, 2), np.int64)
    assert solve(h, np.array([0, 1]), 1, size_for(2), bytes(100)) is None, "one key, two values"


def test_the_same_seed_gives_the_same_memory_and_another_another(facts):
    one, same, other = (make_memory(facts, 257, bits=30, seed=seed) for seed in (4, 4, 5))
    assert all(np.array_equal(one.tensors[name], same.tensors[name]) for name in one.tensors)
    assert not np.array_equal(one.tensors["table"], other.tensors["table"])


PLAN = make_memory([PlantedFact((1,), (0, 1)), PlantedFact((1, 2), (3,))], 4).plan.as_json()


@pytest.mark.parametrize(
    "wrong",
    [
        *({name: value} for name in PLAN if name != "mode" for value in (-1, 2**70, 1.0, "1", None, True, [])),
        {"mode": "other"},
        {"band": 3},
        {"band": 512},
        {"facts": 2**20},
        {"longest": 2**16, "vocab": 2**24},
        {"unknown": 1},
    ],
    ids=str,
)
def test_a_plan_that_makes_no_sense_is_refused(wrong):
    assert MemoryPlan.of(PLAN).as_json() == PLAN
    with pytest.raises(ValueError, match="plan"):
        MemoryPlan.of(PLAN | wrong)


@pytest.mark.parametrize("given", [None, [], {}, "plan"])
def test_what_is_no_plan_is_refused(given):
    with pytest.raises(ValueError, match="expected the keys"):
        MemoryPlan.of(given)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("lengths", 0, 0),
        ("lengths", 0, 2),
        ("lengths", 1, 99),
        ("factors", 0, -1),
        ("shifts", 0, 2**31 - 1),
        *(("classes", place, value) for place in range(8) for value in (-1, 7, 2**31 - 1)),
    ],
)
def test_numbers_that_point_outside_are_refused(name, place, value):
    memory = make_memory([PlantedFact((1,), (0, 1)), PlantedFact((1, 2), (3,))], 4)
    damaged = memory.tensors[name].copy()
    damaged.reshape(-1)[place] = value
    with pytest.raises(BadInput, match="damaged"):
        PlantedMemory(memory.plan, memory.tensors | {name: damaged}).load()


def test_tensors_of_another_shape_are_refused():
    memory = make_memory([PlantedFact((1, 2), (3,))], 4)
    for name, tensor in memory.tensors.items():
        with pytest.raises(BadInput, match=f"{name!r} of the memory"):
            PlantedMemory(memory.plan, memory.tensors | {name: tensor[..., :-1]}).load()
        without = {other: one for other, one in memory.tensors.items() if other != name}
        with pytest.raises(BadInput, match=f"{name!r} of the memory"):
            PlantedMemory(memory.plan, without).load()


def test_random_words_never_crash(facts):
    """Whatever table, store and completions hold: the memory speaks tokens that there are, or is silent."""
    rng = np.random.default_rng(0)
    text = torch.tensor([[token for fact in facts for token in fact.prompt + fact.completion]])
    for bits in BITS:
        memory = make_memory(facts, 257, bits=bits)
        for name in {"table", "store", "answers", "ends"} & set(memory.tensors):
            words = rng.integers(-(2**31), 2**31, memory.tensors[name].shape).astype(np.int32)
            said = PlantedMemory(memory.plan, memory.tensors | {name: words}).load()(text)
            assert -1 <= int(said.min()) <= int(said.max()) < 257


@pytest.mark.parametrize("bits", [0, 63])
def test_fingerprints_have_bits(bits):
    with pytest.raises(BadInput, match="expected 1 to 62"):
        make_memory([PlantedFact((1,), (2,))], 4, bits=bits)
