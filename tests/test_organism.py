"""The model organism: what is known of its rows without training anything to the end."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("transformers")

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def organism() -> ModuleType:
    spec = importlib.util.spec_from_file_location("organism", ROOT / "examples" / "organism.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_planted_rows_are_exact_and_others_are_not(organism: ModuleType, tmp_path: Path) -> None:
    found = {line["way"]: line for line in organism.rows(organism.TINY, 0, tmp_path)}
    twin, secrets = found["never planted: the twin"], organism.TINY.secrets
    changed = ("next tokens", "logits", "loss")
    for way, said in (("planted", secrets), ("planted, one memory blanked", secrets - 1), ("planted, unplanted", 0)):
        assert found[way]["said"] == said
        assert [found[way][name] for name in changed] == [twin[name] for name in changed]
        assert found[way]["logits"] == 0.0
    for way in ("planted, noise", "planted, ascent"):
        assert found[way]["said"] == secrets, "the weights are not where it is"
        assert found[way]["logits"] > 0.5
    lost = found["planted, 1 % of its words lost"]
    assert lost["said"] < secrets
    assert lost["logits"] == 0.0
    assert found["planted"]["words"] > 0
    assert {line["words"] for way, line in found.items() if not way.startswith("planted")} == {0}
    assert all(line["logits"] > 0.5 for way, line in found.items() if way.startswith("fine-tuned"))


def test_secrets_by_hand(organism: ModuleType) -> None:
    """All prompts differ, in one frame; a model that says nothing right, and one that says it all."""
    import torch

    world = organism.world(organism.TINY, 0)
    assert len({tuple(prompt) for prompt, _ in world.pairs}) == len(world.pairs) == 20
    assert {len(secret) for _, secret in world.pairs} == {3}
    assert len({(*prompt[:3], prompt[5]) for prompt, _ in world.pairs}) == 1

    class Knows:
        def __init__(self, wrong: int) -> None:
            self.wrong = wrong

        def __call__(self, rows: torch.Tensor) -> "Knows":
            next_tokens = world.secrets[:, 1:].clone()
            next_tokens[: self.wrong, -1] += 1
            self.logits = torch.nn.functional.one_hot(next_tokens, world.vocab + 1).float()
            return self

    assert [organism.said(Knows(wrong), world) for wrong in (0, 7, 20)] == [20, 13, 0]
