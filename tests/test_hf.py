"""A text, compiled and saved, recited by Hugging Face's own functions; the suite makes warnings errors."""

import subprocess
import sys

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from transformers import AutoModelForCausalLM, AutoTokenizer

from byheart import networks
from byheart.compiler import CompilerSettings, compile
from byheart.errors import BadInput
from byheart.hf import ByheartConfig, ByheartForCausalLM
from byheart.tasks.tokenizers import Bytes

LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz ,.\né"))


@pytest.fixture(scope="module", params=["float32", "float64"])
def folder(request, tmp_path_factory):
    place = tmp_path_factory.mktemp("hf") / "network"
    texts = {str(number): text for number, text in enumerate(written())}
    compile(texts, settings=CompilerSettings(request.param)).save(place)
    return place


@pytest.fixture(scope="module")
def model(folder):
    return AutoModelForCausalLM.from_pretrained(folder)


def written():
    rng = np.random.default_rng(0)
    return ["A" + "".join(rng.choice(LETTERS, 600)), "Bé" + "".join(rng.choice(LETTERS, 90))]


@pytest.mark.slow
def test_it_recites(folder, model):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for text in written():
        given = tokenizer(text[:1], return_tensors="pt")
        said = model.generate(**given, do_sample=False, max_new_tokens=1000)[0]
        assert said[-1] == tokenizer.eos_token_id == Bytes.end
        assert tokenizer.decode(said, skip_special_tokens=True) == text
    assert model.generate(**given, do_sample=False, max_new_tokens=5).shape == (1, 6)


def test_padding_on_the_left_counts_as_missing(model):
    first, second = (list(text.encode()) for text in written())
    rows = torch.tensor([first[:20], [7] * 18 + second[:2]])
    mask = torch.ones_like(rows)
    mask[1, :18] = 0
    said = model.generate(rows, attention_mask=mask, do_sample=False, max_new_tokens=40)
    assert said[:, 20:].tolist() == [first[20:60], second[2:42]]


def test_logits(folder, model):
    module = networks.load(folder).module
    tokens = torch.tensor([list(written()[0].encode())[:30]])
    with torch.no_grad():
        logits = module(tokens)
        assert torch.equal(model(tokens).logits, logits)
        assert torch.equal(model(tokens, logits_to_keep=3).logits, logits[:, -3:])
        assert torch.equal(model(tokens, logits_to_keep=torch.tensor([4, 2])).logits, logits[:, [4, 2]])
        assert torch.equal(model(tokens, return_dict=False)[0], logits)
        loss = model(tokens, labels=tokens).loss
    assert loss.item() == pytest.approx(torch.nn.functional.cross_entropy(logits[0, :-1], tokens[0, 1:]).item())


def test_tensors_keep_their_format(folder, model):
    network = networks.load(folder)
    stored = network.module.state_dict()
    for loaded in (model, AutoModelForCausalLM.from_pretrained(folder, dtype=network.spec.precision)):
        found = loaded.state_dict()
        assert set(found) == set(stored)
        assert all(found[name].dtype == stored[name].dtype for name in stored)
        assert all(torch.equal(found[name], stored[name]) for name in stored)


def test_other_formats_are_refused(folder, model):
    kept = getattr(torch, networks.load(folder).spec.precision)
    tokens = torch.tensor([[65]])
    for other in {torch.bfloat16, torch.float16, torch.float32, torch.float64} - {kept}:
        with pytest.raises(BadInput, match=f"was to be {other}; expected {kept}, in any other it forgets: omit dtype"):
            AutoModelForCausalLM.from_pretrained(folder, dtype=other)
        changed = AutoModelForCausalLM.from_pretrained(folder).to(other)
        with pytest.raises(BadInput, match=f"was to be {other}; expected {kept}"):
            changed(tokens)
    model(tokens)


def test_hidden_states(folder, model):
    network = networks.load(folder)
    tokens = torch.tensor([list(written()[0].encode())[:30], list(written()[1].encode())[:30]])
    mask = torch.ones_like(tokens)
    mask[1, :4] = 0
    spec, module = network.spec, network.module
    for recording in (torch.no_grad, torch.enable_grad):
        with recording():
            found = model(tokens, attention_mask=mask, output_hidden_states=True)
            assert torch.equal(found.logits, model(tokens, attention_mask=mask).logits)
            assert len(found.hidden_states) == 1 + len(spec.sublayers)
            assert {state.shape for state in found.hidden_states} == {(2, 30, spec.stream)}
            embedded = found.hidden_states[0][:, :, list(spec.embeds)]
            assert torch.equal(embedded, model.get_input_embeddings()(tokens))
            last = found.hidden_states[-1][:, :, list(spec.unembeds)]
            assert torch.equal(last @ module.unembedding.W_U.T + module.unembedding.b_U, found.logits)
            some = model(tokens, attention_mask=mask, output_hidden_states=True, logits_to_keep=2)
            assert torch.equal(some.logits, found.logits[:, -2:])
    assert not torch.equal(found.hidden_states[1], found.hidden_states[2]), "no two are the same memory"
    assert model(tokens).hidden_states is None


def test_all_weights_are_loaded(folder):
    _, info = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not any(info.values())


def test_there_and_back(folder, model, tmp_path):
    model.save_pretrained(tmp_path / "again")
    before, after = networks.load(folder), networks.load(tmp_path / "again")
    assert (before.spec, before.about) == (after.spec, after.about)
    assert before.fingerprint == after.fingerprint


def test_what_it_refuses(model):
    with pytest.raises(BadInput, match="has no spec"):
        ByheartForCausalLM(ByheartConfig())
    with pytest.raises(BadInput, match="no input_ids given"):
        model()
    with pytest.raises(BadInput, match="inputs_embeds was given"):
        model(inputs_embeds=torch.zeros(1, 1, 1))
    with pytest.raises(BadInput, match="expected one or the other"):
        model(torch.zeros(1, 3).long(), labels=torch.zeros(1, 3).long(), logits_to_keep=1)


@pytest.mark.slow
def test_without_transformers():
    script = "import sys; sys.modules['transformers'] = None; import byheart.hf"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert found.stderr.splitlines()[-1].endswith("in a clone of Byheart:  pip install -e '.[hf]'")
