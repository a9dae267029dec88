"""The network in JavaScript has PyTorch's logits, to the bit; and what the page says of them is what happens."""

from pathlib import Path

import numpy as np
import pytest
import torch

from byheart.compiler import compile
from byheart.compiler.rectangular.table import TABLE
from byheart.explore.reciting import TEXTS, shown
from byheart.networks.transformer.transformer_network import TransformerNetwork
from byheart.tasks import Facts

from .javascript import evaluated

LOGITS = """given.map(({ network, flips, prompts }) => {
  const net = new script.Network(network), table = new script.Table(net);
  flips.forEach(([entry, bit]) => table.flip(entry, bit));
  return prompts.map((prompt) => net.forward(prompt).map((row) => Buffer.from(row.buffer).toString("hex")).join(""));
})"""


@pytest.fixture(scope="module")
def networks() -> dict[str, TransformerNetwork]:
    """One of every kind of window: the texts of the page, and one that takes two layers of attention."""
    texts = {**TEXTS, "rose": "Rose is a rose is a rose is a rose."}
    built = {name: compile(text).network for name, text in texts.items()}
    return {name: network for name, network in built.items() if isinstance(network, TransformerNetwork)}


def flipped(network: TransformerNetwork, flips: list[tuple[int, int]]) -> TransformerNetwork:
    """The network with these bits of its words changed, in the table's own arithmetic."""
    weights = network.weights[TABLE].clone()
    flat = weights.view(-1)
    lines = weights.shape[1] // 3
    for entry, bit in flips:
        odd = entry // weights.shape[2] // lines % 2
        word = int(flat[entry]) + odd * (1 << 24)
        flat[entry] = (word ^ (1 << bit)) - odd * (1 << 24)
    return network.with_tensor(TABLE, weights)


def test_logits_are_those_of_pytorch_to_the_bit(networks: dict[str, TransformerNetwork]) -> None:
    rng = np.random.default_rng(0)
    cases, expected = [], []
    for name, network in networks.items():
        prompts = [rng.integers(0, 257, size=length).tolist() for length in (1, 3, 9, 70)]
        prompts.append(list(TEXTS.get(name, "Rose is a rose").encode()))
        entries = network.weights[TABLE].numel()
        for count in (0, 5):
            flips = [(int(rng.integers(entries)), int(rng.integers(24))) for _ in range(count)]
            cases.append({"network": shown(name, network), "flips": flips, "prompts": prompts})
            module = flipped(network, flips).module
            with torch.no_grad():
                logits = [module(torch.tensor([prompt]))[0].numpy() for prompt in prompts]
            expected.append([found.astype("<f4").tobytes().hex() for found in logits])
    found = evaluated("network.js", LOGITS, cases)
    assert found == expected
    assert found[0] != found[1], "five flipped bits change logits"


def test_a_text_is_recited_and_its_memories_are_what_the_page_says(networks: dict[str, TransformerNetwork]) -> None:
    name, text = "Peter Piper", TEXTS["Peter Piper"]
    told = evaluated(
        "network.js",
        """(() => {
          const net = new script.Network(given), table = new script.Table(net);
          const { said, ended } = script.recite(net, given.texts[0].prompt, 1000);
          const memories = script.memories(net, table);
          const reads = memories.map(({ context }) => script.reading(net, table, context));
          return {
            said, ended,
            contexts: memories.map(({ context }) => context), answers: memories.map(({ answer }) => answer),
            labels: reads.map(({ label }) => label), Y: reads.map(({ Y }) => Y),
            codes: reads.map(({ code }) => parseInt(code.map(({ value }) => value).join(""), 2)),
            same: memories.every(({ stream, answer }) => script.argmax(net.back(stream)) === answer),
          };
        })()""",
        shown(name, networks[name]),
    )
    assert told["ended"]
    assert bytes([text.encode()[0], *told["said"]]) == text.encode()
    assert [bytes(context) for context in told["contexts"]] == [text[:k].encode() for k in range(1, len(text) + 1)]
    assert bytes(told["answers"][:-1]) == text[1:].encode()
    assert told["answers"] == told["labels"]
    assert told["codes"] == told["Y"], "the bits that the page marks are those that the network reads"
    assert told["same"]


def test_bits_below_an_offset_by_hand() -> None:
    """101101 below offset 2 are bits 1 and 0, then the highest, complemented, and the one below it."""
    told = evaluated("network.js", "script.bitsRead(given, 2, 4, 6)", 0b101101)
    assert told == [{"bit": 1, "value": 0}, {"bit": 0, "value": 1}, {"bit": 5, "value": 0}, {"bit": 4, "value": 0}]


def test_of_equal_logits_the_first_is_said() -> None:
    assert evaluated("network.js", "script.argmax(given)", [1, 3, 3, 2]) == 1


def test_a_text_of_eleven_kilobytes_is_recited() -> None:
    """It has a window of 256, so three layers of attention, and is recited from its beginning and from its middle."""
    text = (Path(__file__).parents[2] / "LICENSE").read_bytes()
    network = compile(text.decode()).network
    script = """(() => {
      const net = new script.Network(given), table = new script.Table(net), all = script.memories(net, table);
      const [{ prompt, tokens }] = given.texts, whole = all[0].tokens, middle = whole.slice(0, 5000);
      return {
        whole, right: all.filter(({ stream, answer }) => script.argmax(net.back(stream)) === answer).length,
        after: script.recite(net, middle.slice(-net.sees), 100).said, fromAll: script.recite(net, middle, 100).said,
      };
    })()"""
    told = evaluated("network.js", script, shown("licence", network))
    assert bytes(told["whole"]) == text
    assert told["right"] == len(text)
    assert bytes(told["after"]) == bytes(told["fromAll"]) == text[5000:5100]


FLIP = """(() => {
  const net = new script.Network(given), table = new script.Table(net), all = script.memories(net, table);
  const { entry, bit, memory } = script.firstFlip(net, table, all.slice(4));
  const untouched = all.filter(({ lanes }) => lanes.every((lane) => lane.entry !== entry));
  table.flip(entry, bit);
  const wrong = all.filter(({ stream, answer }) => script.argmax(net.back(stream)) !== answer);
  const { said } = script.recite(net, given.texts[0].prompt, given.texts[0].tokens);
  return { said, wrong: wrong.map(({ length }) => length), touched: memory.length,
           untouched: untouched.map(({ length }) => length) };
})()"""


def test_the_first_flip_breaks_the_text_and_only_answers_that_read_its_word(
    networks: dict[str, TransformerNetwork],
) -> None:
    for name, network in networks.items():
        text = TEXTS.get(name, "Rose is a rose is a rose is a rose.").encode()
        told = evaluated("network.js", FLIP, shown(name, network))
        assert told["touched"] in told["wrong"]
        assert not set(told["wrong"]) & set(told["untouched"])
        first = min(told["wrong"])
        assert bytes(told["said"])[: first - 1] == text[1:first]
        assert told["said"][first - 1 : first] != list(text[first : first + 1])


def test_facts_are_answered_and_their_memories_are_those_of_the_list() -> None:
    facts = Facts([("capital of France: ", "Paris"), ("столица России: ", "Москва"), ("首都：", "北京")])
    network = compile(facts).network
    script = """(() => {
      const net = new script.Network(given), table = new script.Table(net), all = script.memories(net, table);
      return {
        said: given.facts.map(({ prompt }) => script.recite(net, prompt, 100)),
        right: all.filter(({ stream, answer }) => script.argmax(net.back(stream)) === answer).length, count: all.length,
      };
    })()"""
    told = evaluated("network.js", script, shown("facts", network, facts))
    assert [(bytes(one["said"]).decode(), one["ended"]) for one in told["said"]] == [
        (fact.completion.decode(), True) for fact in facts if isinstance(fact.completion, bytes)
    ]
    assert told["right"] == told["count"] == sum(len(fact.completion) + 1 for fact in facts)
