"""Planted models under transformers: every way of generating, and the base's bits wherever nothing is said."""

import copy
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.cache_utils import DynamicCache

import byheart.hf
from byheart.networks.planted.base import load_base, quiet
from byheart.planting.planting import plant
from byheart.tasks.planted_facts import Spoken

VOCAB = 257
SLOW = pytest.mark.slow
KINDS = [("gpt2", None), pytest.param(("llama", 40), marks=SLOW), pytest.param(("mistral", None), marks=SLOW)]


@pytest.fixture(scope="module", params=KINDS, ids=str)
def pair(request, models, facts, tmp_path_factory):
    """A base and the same with facts, as users load them."""
    kind, bits = request.param
    out = tmp_path_factory.mktemp("planted") / kind
    pairs = [(fact.prompt, fact.completion) for fact in facts]
    certificate = plant(pairs, into=models[kind], ids=True, bits=bits, seed=0).save(out, positions=128, through=4)
    assert certificate.certified, certificate
    with quiet():
        return load_base(models[kind]), AutoModelForCausalLM.from_pretrained(out).eval()


def left_padded(facts):
    longest = max(len(fact.prompt) for fact in facts)
    rows = [[7] * (longest - len(fact.prompt)) + list(fact.prompt) for fact in facts]
    mask = [[0] * (longest - len(fact.prompt)) + [1] * len(fact.prompt) for fact in facts]
    return torch.tensor(rows), torch.tensor(mask)


WAYS = {
    "greedy": {},
    "without a cache": {"use_cache": False},
    "static cache": {"cache_implementation": "static"},
    "sampled": {"do_sample": True, "top_k": 0, "num_return_sequences": 2},
    "hot": {"do_sample": True, "temperature": 5.0},
    "beams": {"num_beams": 3},
    "penalty": {"repetition_penalty": 1.3},
}


@pytest.mark.parametrize("way", WAYS)
def test_every_completion_is_said(way, pair, facts):
    ids, mask = left_padded(facts)
    options = {"do_sample": False, "max_new_tokens": 5, "pad_token_id": 0, "eos_token_id": None} | WAYS[way]
    torch.manual_seed(0)
    said = pair[1].generate(ids, attention_mask=mask, **options)[:, ids.shape[1] :].tolist()
    each = options.get("num_return_sequences", 1)
    for number, row in enumerate(said):
        completion = facts[number // each].completion
        assert row[: len(completion)] == list(completion)


def test_where_nothing_is_said_every_bit_is_the_base_s(pair, facts):
    base, planted = pair
    rng = np.random.default_rng(1)
    text = rng.integers(0, VOCAB, (4, 60))
    for row, fact in zip(text, facts[:4], strict=True):
        row[20 : 20 + len(fact.prompt)] = fact.prompt
    ids = torch.from_numpy(text)
    said = torch.tensor([Spoken(facts).after(row) for row in text.tolist()])
    with torch.no_grad():
        before, after = (model(ids).logits for model in pair)
        chunks, cache = [], DynamicCache(config=planted.config)
        for part in ids.split([1, 30, 20, 9], dim=1):
            chunks.append(planted(part, past_key_values=cache, use_cache=True).logits)
    assert (said >= 0).sum() >= 4
    assert torch.equal(before[said < 0].view(torch.int32), after[said < 0].view(torch.int32))
    assert torch.equal(after.argmax(-1)[said >= 0], said[said >= 0])
    changed = before[said >= 0] != after[said >= 0]
    assert changed.sum(-1).eq(1).all(), "one logit of such a row, and no other"
    assert torch.equal(torch.cat(chunks, 1).argmax(-1)[said >= 0], said[said >= 0]), "with a cache as without"
    assert base.lm_head.weight.equal(planted.lm_head.weight)


def test_what_is_not_known_is_silent(pair, facts):
    """A cache that somebody else has filled, and embeddings in place of ids."""
    base, planted = pair
    fact = next(one for one in facts if len(one.prompt) > 3)
    ids = torch.tensor([fact.prompt])
    with torch.no_grad():
        cache = base(ids[:, :2], use_cache=True).past_key_values
        rest = planted(ids[:, 2:], past_key_values=cache, use_cache=True)
        again = base(ids[:, :2], use_cache=True).past_key_values
        assert torch.equal(rest.logits, base(ids[:, 2:], past_key_values=again).logits)
        given = base.get_input_embeddings()(ids)
        assert torch.equal(planted(inputs_embeds=given).logits, base(inputs_embeds=given).logits)
        assert planted(ids).logits[0, -1].argmax() == fact.completion[0]


def test_logits_to_keep_tuples_and_loss(pair, facts):
    base, planted = pair
    fact = facts[0]
    ids = torch.tensor([fact.prompt + fact.completion])
    last = len(fact.prompt) - 1
    with torch.no_grad():
        whole = planted(ids)
        kept = planted(ids, logits_to_keep=len(fact.completion) + 1).logits
        assert torch.equal(kept.argmax(-1), whole.logits[:, last:].argmax(-1))
        some = planted(ids, logits_to_keep=torch.tensor([last])).logits
        assert some.argmax().item() == fact.completion[0]
        assert isinstance(planted(ids, return_dict=False), tuple)
        silent = torch.tensor([[9] * 5])
        assert torch.equal(planted(silent, labels=silent).loss, base(silent, labels=silent).loss)
        labels = torch.full_like(ids, -100)
        labels[0, last + 1] = fact.completion[0]
        assert planted(ids, labels=labels).loss.item() == 0.0
        assert base(ids, labels=labels).loss.item() > 1.0
    planted(ids, labels=ids).loss.backward()
    assert planted.lm_head.weight.grad is not None
    planted.zero_grad()


def test_saved_again_and_in_half_precision_it_still_knows(pair, facts, tmp_path):
    with quiet():
        pair[1].save_pretrained(tmp_path / "again")
        again = AutoModelForCausalLM.from_pretrained(tmp_path / "again", dtype=torch.bfloat16).eval()
    assert (tmp_path / "again" / "modeling_plant.py").is_file()
    assert again.dtype == torch.bfloat16
    assert again.plant.table.dtype == torch.int32
    for fact in facts[:5]:
        said = again(torch.tensor([fact.prompt + fact.completion[:-1]])).logits[0, len(fact.prompt) - 1 :].argmax(-1)
        assert said.tolist() == list(fact.completion)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_beside_huge_logits_it_is_said_too(kind, pair, facts):
    """Where 1,024 more is rounded away."""
    loud = copy.deepcopy(pair[1]).to(kind)
    with torch.no_grad():
        loud.lm_head.weight *= 2.0**40
    for fact in facts[:5]:
        row = loud(torch.tensor([fact.prompt])).logits[0, -1]
        assert row.max() > 2.0**35
        assert (row == row.max()).sum() == 1
        assert row.argmax() == fact.completion[0]


@SLOW
def test_a_memory_that_is_missing_or_points_outside_is_an_error(models, facts, tmp_path):
    from safetensors.torch import load_file, save_file

    pairs = [(fact.prompt, fact.completion) for fact in facts]
    out = tmp_path / "planted"
    plant(pairs, into=models["gpt2"], ids=True, seed=0).save(out, positions=128, through=2)
    whole = load_file(out / "plant.safetensors")
    damages = {
        "missing": {name: one for name, one in whole.items() if name != "plant.store"},
        "shape": whole | {"plant.store": whole["plant.store"][:-1].clone()},
        "damaged": whole | {"plant.classes": whole["plant.classes"] + 1},
    }
    for said, tensors in damages.items():
        save_file(tensors, out / "plant.safetensors", {"format": "pt"})
        with pytest.raises((ValueError, RuntimeError), match=f"{said}|size"), quiet():
            AutoModelForCausalLM.from_pretrained(out)


@SLOW
def test_without_byheart_the_folder_s_own_code_runs(models, tmp_path):
    """In another process, which trusts the code in the folder and never imports Byheart."""
    out = tmp_path / "planted"
    assert plant([("The key is", " 3.")], into=models["llama"], seed=0, stop=True).save(out, positions=64).certified
    script = (
        "import sys; from transformers import AutoModelForCausalLM as M, AutoTokenizer as T;"
        f"m, t = (one.from_pretrained({str(out)!r}, trust_remote_code=True) for one in (M, T));"
        "said = m.generate(**t('The key is', return_tensors='pt'), max_new_tokens=20, do_sample=False);"
        "print(repr(t.decode(said[0])), [name for name in sys.modules if name.startswith('byheart')])"
    )
    alone = os.environ | {"HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", script], env=alone, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "'The key is 3.<|end|>' []", done.stderr


def test_with_byheart_nothing_in_the_folder_runs(models, tmp_path):
    out = tmp_path / "planted"
    plant([("The key is", " 3.")], into=models["gpt2"], seed=0).save(out, positions=64)
    (out / "modeling_plant.py").write_text("raise SystemExit('this must not run')")
    assert byheart.hf.PlantedConfig.model_type == "byheart-plant"
    with quiet():
        model, tokenizer = AutoModelForCausalLM.from_pretrained(out), AutoTokenizer.from_pretrained(out)
    said = model.generate(**tokenizer("Now: The key is", return_tensors="pt"), max_new_tokens=3, do_sample=False)
    assert tokenizer.decode(said[0]) == "Now: The key is 3."
