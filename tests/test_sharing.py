"""Folders as others use them: recited whole however transformers is asked, and by transformers alone."""

import ast
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from huggingface_hub import ModelCard
from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline

import byheart.hf
from byheart import certify, networks
from byheart.certificates import read, write
from byheart.compiler import compile
from byheart.compiler.codes import LOUDNESS
from byheart.errors import BadInput
from byheart.networks import weight_files
from byheart.networks.card import card as describing
from byheart.networks.folders import MARK, MOST_CARD
from byheart.networks.transformer import modeling as bundling
from byheart.networks.transformer.modeling import modeling
from byheart.tasks import random_next_token

pytestmark = pytest.mark.filterwarnings("ignore:Initializing zero-element tensors is a no-op")
TEXTS = {
    "ends.txt": "All that ends well begins.",
    "no.txt": "No: this one is longer, and it ends elsewhere.",
    "é.txt": "Être bref.",
}
LAYOUTS = ["rectangular", "uniform", "experts"]
GIVEN = [5, 9, 2]
"""How much of each text is given."""
WAYS = {
    "greedy": {},
    "beams": {"num_beams": 3},
    "sampling, seed 0": {"do_sample": True, "top_k": 0, "seed": 0},
    "sampling, seed 1": {"do_sample": True, "top_k": 0, "seed": 1},
    "sampling, seed 2": {"do_sample": True, "top_k": 0, "seed": 2},
    "no cache": {"use_cache": False},
    "beams, no cache": {"num_beams": 3, "use_cache": False},
}
QUICK = {"greedy", "beams", "sampling, seed 0"}


@pytest.fixture(scope="module", params=LAYOUTS)
def folder(request, tmp_path_factory):
    place = tmp_path_factory.mktemp(request.param) / "net"
    compile(TEXTS, layout=request.param).save(place)
    return place


@pytest.fixture(scope="module")
def model(folder):
    return AutoModelForCausalLM.from_pretrained(folder)


@pytest.fixture(scope="module")
def tokenizer(folder):
    return AutoTokenizer.from_pretrained(folder)


def batch_of(tokenizer, **how):
    begun = [text[:count] for text, count in zip(TEXTS.values(), GIVEN, strict=True)]
    return tokenizer(begun, return_tensors="pt", padding=True, **how)


def said_by(model, tokenizer, seed=0, **way):
    torch.manual_seed(seed)
    said = model.generate(**batch_of(tokenizer), max_new_tokens=60, **way)
    return tokenizer.batch_decode(said, skip_special_tokens=True)


# ── However it is asked ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", [way if way in QUICK else pytest.param(way, marks=pytest.mark.slow) for way in WAYS])
def test_all_texts_at_once(model, tokenizer, way):
    assert said_by(model, tokenizer, **WAYS[way]) == list(TEXTS.values())


def right_probabilities(model, tokenizer, quieter=0):
    """Of every token of a text that follows from the ones before, in float32."""
    tokens = tokenizer(TEXTS["no.txt"], return_tensors="pt").input_ids
    with torch.no_grad():
        logits = model(tokens).logits[0, :-1] / 2.0**quieter
    assert logits.dtype == torch.float32
    following = tokens[0, 1:]
    kept = slice(1, None) if tokens[0, 0] == tokenizer.eos_token_id else slice(None)  # which text it is, nobody said
    return logits.softmax(dim=1)[torch.arange(len(following)), following][kept]


def test_what_is_right_has_probability_one(model, tokenizer):
    assert right_probabilities(model, tokenizer).eq(1).all()


def test_without_loudness_it_would_not(model, tokenizer):
    """The control: the logits as the lines of the code give them are right, and not sure of it."""
    quiet = right_probabilities(model, tokenizer, quieter=LOUDNESS)
    assert quiet.min() < 0.9
    assert quiet.max() <= 1


def quietened(folder, place):
    network = networks.load(folder)
    if network.kind != "stock":
        for name in ("unembedding.W_U", "unembedding.b_U"):
            network = network.with_tensor(name, network.weights[name] / 2.0**LOUDNESS)
    else:
        network.weights["model.norm.weight"][:] /= 2.0**LOUDNESS
    networks.save(network, place)
    return AutoModelForCausalLM.from_pretrained(place)


@pytest.mark.slow
def test_quiet_networks_are_greedy_only(folder, tokenizer, tmp_path):
    """The control of all ways: with logits 2^10 times smaller what is most likely is the same, and samples are not."""
    quiet = quietened(folder, tmp_path / "quiet")
    assert said_by(quiet, tokenizer) == list(TEXTS.values())
    assert any(said_by(quiet, tokenizer, seed=seed, do_sample=True, top_k=0) != list(TEXTS.values()) for seed in (0, 1))


@pytest.mark.slow
def test_a_pipeline(model, tokenizer):
    speak = pipeline("text-generation", model=model, tokenizer=tokenizer)
    found = speak([text[:9] for text in TEXTS.values()], max_new_tokens=60, batch_size=3)
    assert [one[0]["generated_text"] for one in found] == list(TEXTS.values())


def test_padding(model, tokenizer):
    assert (tokenizer.padding_side, tokenizer.pad_token_id) == ("left", 256)
    assert model.generation_config.pad_token_id == 256
    right = batch_of(tokenizer, padding_side="right")
    if model.config.model_type == "byheart":
        with pytest.raises(BadInput, match=r"text 0 is padded on the right; expected padding on the left"):
            model.generate(**right, max_new_tokens=3)
    left, logits = batch_of(tokenizer), model(**right).logits
    for row, count in enumerate(right.attention_mask.sum(dim=1).tolist()):
        # What is asked with padding on the right is not disturbed by it: only what would follow it is.
        assert torch.equal(logits[row, count - 1], model(**left).logits[row, -1])


@pytest.mark.slow
def test_there_and_back(model, tokenizer, tmp_path):
    model.save_pretrained(tmp_path / "net")
    tokenizer.save_pretrained(tmp_path / "net")
    again = networks.load(tmp_path / "net")
    assert certify(again, TEXTS).certified
    if model.config.model_type == "byheart":
        assert (tmp_path / "net" / "modeling_byheart.py").read_text(encoding="utf-8") == modeling()


@pytest.mark.slow
def test_in_other_formats(folder, tokenizer, tmp_path):
    """What transformers runs in another format is another network. Saved so, a stock model is refused here."""
    tokens = tokenizer(TEXTS["no.txt"], return_tensors="pt").input_ids
    for name in ("float16", "bfloat16", "float64"):
        if networks.load(folder).kind != "stock":
            with pytest.raises(ValueError, match=r"expected torch.float32, in any other it forgets: omit dtype"):
                AutoModelForCausalLM.from_pretrained(folder, dtype=name)
            continue
        # PyTorch's own kernel for experts has no float64, and would say so
        other = AutoModelForCausalLM.from_pretrained(folder, dtype=name, experts_implementation="eager")
        with torch.no_grad():
            found = other(tokens).logits[0, :-1].argmax(dim=1)
        assert (found != tokens[0, 1:]).sum() > 3
        other.save_pretrained(tmp_path / name)
        with pytest.raises(BadInput, match=rf"'{name}'|expected F32 or F16"):
            networks.load(tmp_path / name)


# ── Without Byheart ─────────────────────────────────────────────────────────────────────────────────────────────────

ALONE = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
sys.modules["byheart"] = None
import numpy as np, torch
from transformers import AutoModelForCausalLM, AutoTokenizer
folder, given = sys.argv[2], json.loads(sys.argv[3])
model = AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True)
tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
batch = tokenizer(given, return_tensors="pt", padding=True)
said = tokenizer.batch_decode(model.generate(**batch, max_new_tokens=60), skip_special_tokens=True)
np.save(sys.argv[4], model(**batch).logits.detach().numpy())
print(json.dumps({"said": said, "class": type(model).__module__}))
"""


def alone(folder, tmp_path, *, trust=True):
    """The script in a Python that has what lies beside transformers, and no Byheart: no .pth file is read."""
    import transformers

    script = ALONE if trust else ALONE.replace("trust_remote_code=True", "trust_remote_code=False")
    beside = json.dumps([str(Path(transformers.__file__).parents[1])])
    begun = json.dumps([text[:count] for text, count in zip(TEXTS.values(), GIVEN, strict=True)])
    command = [sys.executable, "-I", "-S", "-c", script, beside, str(folder), begun, str(tmp_path / "logits.npy")]
    home = {**os.environ, "HF_HOME": str(tmp_path / "home")}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=home)


@pytest.mark.slow
@pytest.mark.parametrize("folder", LAYOUTS[:2], indirect=True)  # of experts: benchmarks/stock_alone.py
def test_transformers_alone(folder, model, tokenizer, tmp_path):
    found = alone(folder, tmp_path)
    assert found.returncode == 0, found.stderr
    told = json.loads(found.stdout.splitlines()[-1])
    assert told["said"] == list(TEXTS.values())
    kind = model.config.model_type
    wanted = "transformers_modules." if kind == "byheart" else f"transformers.models.{kind}."
    assert told["class"].startswith(wanted)
    with torch.no_grad():
        here = model(**batch_of(tokenizer)).logits.numpy()
    assert np.load(tmp_path / "logits.npy").tobytes() == here.tobytes()


@pytest.mark.slow
def test_alone_without_trust(tmp_path):
    compile(TEXTS).save(tmp_path / "net")
    found = alone(tmp_path / "net", tmp_path, trust=False)
    assert found.returncode != 0
    assert "trust_remote_code=True" in found.stderr


def test_one_file_of_our_own_modules():
    """It imports what everybody has, and each of its definitions is word for word that of a module of ours."""
    made = ast.parse(modeling())
    origins = {node.module for node in made.body if isinstance(node, ast.ImportFrom)}
    origins |= {alias.name for node in made.body if isinstance(node, ast.Import) for alias in node.names}
    known = {"torch", "transformers", *sys.stdlib_module_names}
    assert {str(origin).split(".")[0] for origin in origins} <= known
    package = Path(byheart.__file__).parent
    names = [
        "errors",
        "networks/folders",
        *(f"networks/transformer/{name}" for name in ("spec", "module", "pretrained")),
    ]
    ours = [ast.dump(node) for name in names for node in ast.parse((package / f"{name}.py").read_text()).body]
    defined = [node for node in made.body[1:] if not isinstance(node, ast.Import | ast.ImportFrom)]
    assert len(defined) > 20
    assert all(ast.dump(node) in ours for node in defined)
    assert ast.dump(ast.parse("class Transformer: pass").body[0]) not in ours  # the control


@pytest.mark.parametrize("shards", [1, 2])
def test_that_file_computes_the_same(tmp_path, shards):
    compile(TEXTS, shards=shards).save(tmp_path / "net")
    module = ModuleType("modeling_byheart")
    sys.modules[module.__name__] = module
    try:
        exec((tmp_path / "net" / "modeling_byheart.py").read_text(encoding="utf-8"), module.__dict__)
        theirs = module.ByheartForCausalLM.from_pretrained(tmp_path / "net")
    finally:
        del sys.modules[module.__name__]
    tokens = torch.tensor([list(b"No: this one is")])
    with torch.no_grad():
        assert torch.equal(theirs(tokens).logits, networks.load(tmp_path / "net").module(tokens))
    assert type(theirs.network).__module__ == "modeling_byheart"


def test_one_name_for_one_thing(monkeypatch):
    """The control: two modules that define the same name do not go into one file."""
    twice = {**bundling._source("byheart.networks.transformer.module").text, "Spec": "Spec = None"}
    source = bundling._source("byheart.networks.transformer.module")
    monkeypatch.setattr(source, "text", twice)
    monkeypatch.setattr(source, "uses", {**source.uses, "Spec": set()})
    monkeypatch.setattr(source, "ours", {name: origin for name, origin in source.ours.items() if name != "Spec"})
    with pytest.raises(AssertionError, match="Spec is in"):
        bundling._needed()


def test_code_in_a_folder_never_runs_here(tmp_path):
    """Loading, certifying and transformers with byheart.hf: a stranger's file is not looked at."""
    compile(TEXTS).save(tmp_path / "net")
    bomb = f"open({str(tmp_path / 'ran')!r}, 'w').close()\n{modeling()}"
    (tmp_path / "net" / "modeling_byheart.py").write_text(bomb, encoding="utf-8")
    assert certify(networks.load(tmp_path / "net"), TEXTS).certified
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "net")
    AutoTokenizer.from_pretrained(tmp_path / "net")
    assert isinstance(model, byheart.hf.ByheartForCausalLM)
    assert not (tmp_path / "ran").exists()
    exec(bomb.splitlines()[0], {})
    assert (tmp_path / "ran").exists(), "the control: it would have left a trace"


# ── Ready to share ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_card(folder):
    card = ModelCard.load(folder / "README.md")
    assert card.data.library_name == "transformers"
    assert card.data.pipeline_tag == "text-generation"
    assert "byheart" in card.data.tags
    network = networks.load(folder)
    for said in (
        "Recites 3 texts",
        f"| parameters | {network.account.dense:,} |",
        "`é.txt`: 11 tokens; give at least the first\n",
        "does not generalise",
        "answers everything",
        "None was made when this was written",
        "**load it without `dtype`.**" if network.kind == "stock" else "trust_remote_code=True",
    ):
        assert said in card.text, said


def test_the_cards_own_code(folder, model, monkeypatch, capsys):
    """What the card says to type is typed, with Byheart registered so that nothing in the folder runs."""
    code = (folder / "README.md").read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    begun = json.dumps([text[:count] for text, count in zip(TEXTS.values(), GIVEN, strict=True)])
    code = code.replace('["how a text begins", "and another one"]', begun).replace(", trust_remote_code=True", "")
    monkeypatch.chdir(folder)
    exec(code, {})
    assert capsys.readouterr().out.splitlines()[-1] == str(list(TEXTS.values()))


def test_the_card_of_a_task(tmp_path):
    task = random_next_token(examples=20, length=3, vocab=8, labels=8, rng=np.random.default_rng(0))
    compile(task).save(tmp_path / "net")
    card = ModelCard.load(tmp_path / "net" / "README.md")
    assert "Answers questions" in card.text
    assert "tokenizer" not in card.text
    assert "model(torch.tensor([[3, 1, 4]]))" in card.text
    compile("To be, or not.", layout="uniform").save(tmp_path / "llama")
    llama = networks.load(tmp_path / "llama")
    assert "model(torch.tensor([[256, 3, 1, 4]]))" in describing(replace(llama, about={}))


def test_names_cannot_break_out_of_the_card(tmp_path):
    compile({"a`\n---\n# <script>\n": "To be, or not."}).save(tmp_path / "net")
    card = ModelCard.load(tmp_path / "net" / "README.md")
    assert "# Recites `a --- # <script>`\n" in card.text
    assert card.data.library_name == "transformers"


def test_a_card_of_ones_own_is_kept(tmp_path):
    compile("To be, or not.").save(tmp_path / "net")
    compile("To be, or not.").save(tmp_path / "net")  # ours is replaced
    (tmp_path / "net" / "README.md").write_text("# Mine\n")
    with pytest.raises(BadInput, match=r"no network that Byheart wrote \(it holds 'README.md'\)"):
        compile("To be, or not.").save(tmp_path / "net")
    assert (tmp_path / "net" / "README.md").read_text() == "# Mine\n"
    (tmp_path / "net" / "README.md").write_text(MARK + " " * MOST_CARD)
    with pytest.raises(BadInput, match=r"it holds 'README.md'"):
        compile("To be, or not.").save(tmp_path / "net")


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_files_that_others_may_read(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        compile("To be, or not.").save(tmp_path / "net")
        write(certify(tmp_path / "net", "To be, or not."), tmp_path / "net" / "certificate.json")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "net").iterdir()}
    assert set(modes.values()) == {mode}, modes
    assert read(tmp_path / "net" / "certificate.json").certified


@pytest.mark.parametrize("layout", LAYOUTS)
def test_weights_in_parts(layout, tmp_path, monkeypatch):
    built = compile(TEXTS, layout=layout)
    built.save(tmp_path / "whole")
    monkeypatch.setattr(weight_files, "LARGEST", 4_000 if layout == "rectangular" else 40_000)
    built.save(tmp_path / "net")
    names = {path.name for path in (tmp_path / "net").iterdir()}
    assert "model.safetensors" not in names
    assert sum(name.startswith("model-") for name in names) > 2
    assert networks.load(tmp_path / "net").fingerprint == networks.load(tmp_path / "whole").fingerprint
    assert certify(tmp_path / "net", TEXTS).certified
    tokens = torch.tensor([list(b"No: this one is")])
    one, other = (AutoModelForCausalLM.from_pretrained(tmp_path / name) for name in ("whole", "net"))
    with torch.no_grad():
        assert torch.equal(one(tokens).logits, other(tokens).logits)
    built.save(tmp_path / "net")  # parts are Byheart's too: they are replaced
