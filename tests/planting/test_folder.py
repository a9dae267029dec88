"""What is written, given back, refused; and what a check finds out."""

import json
import shutil
from contextlib import nullcontext

import numpy as np
import pytest
import tokenizers

from byheart.certificates.judges.planted import certify_planted, check, recheck
from byheart.errors import BadInput
from byheart.files.tensors import read_tensors, write_tensors
from byheart.files.untrusted import digest
from byheart.planting import detect, plant, unplant
from byheart.tasks.facts import Facts
from byheart.tasks.planted_facts import PlantedFact

PAIRS = [("The capital of Freedonia is", " Fredville."), ("門の鍵は", "三番です。"), ("a", "bc"), ("a", "b")]

SLOW = pytest.mark.slow
MODES = [None, pytest.param(40, marks=SLOW)]


@pytest.fixture(scope="module", params=MODES, ids=["whole", "print"])
def planted(request, models, tmp_path_factory):
    out = tmp_path_factory.mktemp("folders") / "planted"
    assert plant(PAIRS, into=models["gpt2"], bits=request.param, seed=0).save(out, positions=64).certified
    return out


@pytest.fixture
def copy(planted, tmp_path):
    shutil.copytree(planted, tmp_path / "copy")
    return tmp_path / "copy"


def resign(folder, *names):
    """Make the manifest say that the files are right."""
    manifest = json.loads((folder / "plant.json").read_text())
    manifest["files"] |= {name: digest(folder / name) for name in names}
    (folder / "plant.json").write_text(json.dumps(manifest))


def test_unplanting_gives_the_base_back(planted, models, tmp_path, everything):
    assert unplant(planted, tmp_path / "base") == len(everything(models["gpt2"]))
    assert everything(tmp_path / "base") == everything(models["gpt2"])


@SLOW
def test_shards_keep_their_names(models, tmp_path, everything):
    from byheart.networks.planted.base import load_base, quiet

    with quiet():
        load_base(models["llama"]).save_pretrained(tmp_path / "shards", max_shard_size="40KB")
    assert not (tmp_path / "shards" / "model.safetensors").exists()
    certificate = plant([([1, 2], [3])], into=tmp_path / "shards", ids=True).save(tmp_path / "out", positions=64)
    assert certificate.certified
    unplant(tmp_path / "out", tmp_path / "back")
    assert everything(tmp_path / "back") == everything(tmp_path / "shards")


def test_a_base_that_was_changed_is_not_given_back(copy, tmp_path):
    data = bytearray((copy / "base.safetensors").read_bytes())
    data[-1] ^= 1
    (copy / "base.safetensors").write_bytes(data)
    with pytest.raises(BadInput, match="was changed since it was planted"):
        unplant(copy, tmp_path / "base")
    assert not (tmp_path / "base").exists()


@pytest.mark.parametrize("place", ["../out.txt", "/etc/passwd", "a/../../b", "", "a//b", "."])
def test_a_manifest_that_leads_out_of_the_folder_is_refused(place, copy, tmp_path):
    manifest = json.loads((copy / "plant.json").read_text())
    for changed in ({place: manifest["base"]["config.json"]}, {"x": {"as": place, "sha256": "0"}}):
        (copy / "plant.json").write_text(json.dumps(manifest | {"base": manifest["base"] | changed}))
        with pytest.raises(BadInput, match="expected a file inside the folder"):
            unplant(copy, tmp_path / "base")


def test_every_file_of_the_base_lies_where_transformers_reads_it(copy):
    """A base without generation_config.json, and one that has it at another place, would generate otherwise."""
    manifest = json.loads((copy / "plant.json").read_text())
    shutil.move(copy / "generation_config.json", copy / "unplanted" / "generation_config.json")
    manifest["base"]["generation_config.json"]["as"] = "unplanted/generation_config.json"
    (copy / "plant.json").write_text(json.dumps(manifest))
    with pytest.raises(BadInput, match=r"'generation_config.json' lies at"):
        detect(copy)


def test_a_link_in_the_folder_is_refused(copy, tmp_path):
    shutil.move(copy / "base.safetensors", tmp_path / "elsewhere")
    (copy / "base.safetensors").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match="no such file"):
        unplant(copy, tmp_path / "base")


def test_what_is_planted_is_detected_and_listed(planted, models):
    found = detect(planted)
    assert found is not None
    assert detect(models["gpt2"]) is None
    tokenizer = found.tokenizer(planted)
    text = tokenizer.encode("So a, and b.", add_special_tokens=False)
    assert [(place, chr(token)) for place, token in found.fires(text)] == [(4, "b"), (7, "b")]
    if found.manifest.plan.mode == "print":
        assert found.facts is None
    else:
        told = [(tokenizer.decode(one.prompt), tokenizer.decode(one.completion)) for one in found.facts]
        assert sorted(told) == sorted(PAIRS[:3])


@pytest.mark.parametrize("name", ["plant.safetensors", "modeling_plant.py", "config.json"])
def test_files_that_were_changed_are_refused(name, copy):
    (copy / name).write_bytes((copy / name).read_bytes() + b" ")
    with pytest.raises(BadInput, match="was changed since it was planted"):
        detect(copy)


def test_a_check_finds_a_changed_bit(copy):
    """Also one that the manifest was made to agree with: of what is compared, and of what leads there."""
    tensors = read_tensors(copy / "plant.safetensors", ("I32",))
    tokenizer = detect(copy).tokenizer(copy)
    for name, place in {"store": 0, "answers": 0, "factors": -1}.items():
        if f"plant.{name}" in tensors:
            words = tensors[f"plant.{name}"].copy()
            words.reshape(-1)[place] ^= 1
            write_tensors(copy / "plant.safetensors", tensors | {f"plant.{name}": words}, {"format": "pt"})
            resign(copy, "plant.safetensors")
            assert not recheck(copy, PAIRS, tokenizer, positions=64, through=2).certified, name


def test_code_of_somebody_else_s_is_told(copy):
    assert detect(copy).own_code
    (copy / "modeling_plant.py").write_text("import os")
    resign(copy, "modeling_plant.py")
    assert not detect(copy).own_code


def test_a_check_finds_facts_that_are_missing_or_more(planted):
    tokenizer = detect(planted).tokenizer(planted)
    assert recheck(planted, PAIRS, tokenizer, positions=64).certified
    for other in (PAIRS[:2], [*PAIRS, ("x", "y")], [("a", "bd"), *PAIRS[:2]]):
        found = recheck(planted, other, tokenizer, positions=64)
        assert not found.certified
        assert found.counterexample is not None


def test_a_certificate_that_lies_is_refused(copy):
    given, tokenizer = json.loads((copy / "certificate.json").read_text()), detect(copy).tokenizer(copy)
    lies = {"files": {"weights": "0" * 64}, "claims": {"statement": "paraphrases are covered"}}
    for about, lie in lies.items():
        (copy / "certificate.json").write_text(json.dumps(given | lie))
        with pytest.raises(BadInput, match=f"is about other {about}"):
            recheck(copy, PAIRS, tokenizer, positions=64, through=2)


def test_what_transformers_would_load_instead_is_refused(copy):
    """A file that is preferred to the index, or named by it, or a setting: the manifest can be made to agree."""
    tokenizer, options = detect(copy).tokenizer(copy), {"positions": 64, "through": 2}
    (copy / "certificate.json").unlink()
    (copy / "README.md").write_text("A card is no model.")
    assert recheck(copy, PAIRS, tokenizer, **options).certified
    shutil.copy(copy / "base.safetensors", copy / "model.safetensors")
    with pytest.raises(BadInput, match=r"holds 'model\.safetensors', which was not planted"):
        recheck(copy, PAIRS, tokenizer, **options)
    (copy / "model.safetensors").unlink()
    for name, key in (("config.json", "eos_token_id"), ("model.safetensors.index.json", "weight_map")):
        before = (copy / name).read_text()
        (copy / name).write_text(json.dumps(json.loads(before) | {key: {}}))
        resign(copy, name)
        with pytest.raises(BadInput, match="is not what planting writes"):
            recheck(copy, PAIRS, tokenizer, **options)
        (copy / name).write_text(before)
        resign(copy, name)


@pytest.mark.parametrize("name", [".more/x.json", "x.md", "adapter_config.json"])
def test_only_harmless_files_may_be_added(name, copy):
    """The list is that of other networks' folders."""
    tokenizer = detect(copy).tokenizer(copy)
    (copy / name).parent.mkdir(exist_ok=True)
    (copy / name).write_text("{}")
    with pytest.raises(BadInput, match=f"holds '{name}', which was not planted"):
        recheck(copy, PAIRS, tokenizer, positions=64, through=2)


def test_other_code_is_not_certified(copy):
    """Who has no Byheart would run it; the manifest can be made to agree."""
    tokenizer = detect(copy).tokenizer(copy)
    with (copy / "modeling_plant.py").open("a") as file:
        file.write("# more\n")
    resign(copy, "modeling_plant.py")
    with pytest.raises(BadInput, match=r"modeling_plant\.py: is not the code"):
        recheck(copy, PAIRS, tokenizer, positions=64, through=2)


@pytest.mark.parametrize("where", ["before", "behind"])
def test_a_tokenizer_that_adds_to_prompts_is_refused(where, models, tmp_path):
    """Tokens before a prompt do no harm; behind it, no text of a user would end with the prompt."""
    base = shutil.copytree(models["gpt2"], tmp_path / "base")
    own, text = {"SpecialToken": {"id": "e", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    order = [own, text] if where == "before" else [text, own]
    tokens = {"e": {"id": "e", "ids": [101], "tokens": ["e"]}}
    added = {"type": "TemplateProcessing", "single": order, "pair": order, "special_tokens": tokens}
    tokenizer = json.loads((base / "tokenizer.json").read_text())
    (base / "tokenizer.json").write_text(json.dumps(tokenizer | {"post_processor": added}))
    expected = pytest.raises(BadInput, match=r"the tokenizer makes .* of the prompt")
    with nullcontext() if where == "before" else expected:
        plant(PAIRS, into=base, seed=0)


@pytest.mark.parametrize("name", ["custom_generate/generate.py", "tokenizer_config.json"])
def test_a_base_with_code_is_refused(name, models, tmp_path):
    """It would run as soon as the planted model is loaded with trust in the code of the memory."""
    base = shutil.copytree(models["gpt2"], tmp_path / "base")
    (base / name).parent.mkdir(exist_ok=True)
    (base / name).write_text('{"eos_token": "<|end|>", "auto_map": {"AutoTokenizer": ["other.T", null]}}')
    with pytest.raises(BadInput, match=f"{name}: .* code, which would run"):
        plant(PAIRS, into=base, seed=0)


def test_a_base_that_cannot_run_is_bad_input(models, tmp_path):
    """It can be loaded: a model with fewer than no layers."""
    shutil.copytree(models["gpt2"], tmp_path / "odd")
    config = json.loads((tmp_path / "odd" / "config.json").read_text())
    (tmp_path / "odd" / "config.json").write_text(json.dumps(config | {"n_layer": -1}))
    with pytest.raises(BadInput, match=r"cannot be (run|loaded) by transformers"):
        plant(PAIRS, into=tmp_path / "odd", seed=0).save(tmp_path / "out", positions=64, through=2)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["BertForMaskedLM", "GPT2ForSequenceClassification", 5])
def test_a_model_that_was_saved_for_something_else_is_no_base(kind, models, tmp_path):
    """Transformers would load it all the same, and draw what it lacks at random."""
    shutil.copytree(models["gpt2"], tmp_path / "odd")
    config = json.loads((tmp_path / "odd" / "config.json").read_text())
    assert config["architectures"] == ["GPT2LMHeadModel"]
    (tmp_path / "odd" / "config.json").write_text(json.dumps(config | {"architectures": [kind]}))
    with pytest.raises(BadInput, match=rf"was saved as {kind!r}; expected a causal language model, GPT2LMHeadModel"):
        plant(PAIRS, into=tmp_path / "odd", seed=0)


def test_a_base_without_one_of_its_tensors_is_refused(models, tmp_path):
    """Such a tensor would be drawn at random, each time anew."""
    shutil.copytree(models["gpt2"], tmp_path / "odd")
    tensors = read_tensors(tmp_path / "odd" / "model.safetensors", ("F32",))
    del tensors["transformer.h.1.mlp.c_fc.weight"]
    write_tensors(tmp_path / "odd" / "model.safetensors", tensors, {"format": "pt"})
    with pytest.raises(BadInput, match=r"lacks the tensor transformer\.h\.1\.mlp\.c_fc\.weight"):
        plant(PAIRS, into=tmp_path / "odd", seed=0).save(tmp_path / "out", positions=64, through=2)
    assert not (tmp_path / "out").exists()


def test_a_tokenizer_that_does_not_know_the_words_is_refused(models, tmp_path):
    """Its "unknown" would stand for any other word as well, and the fact be said after them all."""
    shutil.copytree(models["gpt2"], tmp_path / "odd")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"The": 0, "key": 1, "<unk>": 2}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "odd" / "tokenizer.json"))
    named = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>"}
    (tmp_path / "odd" / "tokenizer_config.json").write_text(json.dumps(named))
    assert plant([("The", " key")], into=tmp_path / "odd", seed=0).facts == [PlantedFact((0,), (1,), "facts[0]")]
    for pair, what in ((("The lock", " key"), "prompt"), (("The", " lock"), "completion")):
        with pytest.raises(BadInput, match=f"the tokenizer has no tokens for the {what}, and reads '<unk>'"):
            plant([pair], into=tmp_path / "odd", seed=0)


def rewrite_tokenizer(folder, **parts):
    """Put other parts into a folder's tokenizer.json."""
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | parts))


REPLACED = {"type": "Replace", "pattern": {"String": "Paris"}, "content": "Berlin"}


def test_a_tokenizer_that_reads_other_words_is_refused(models, tmp_path):
    """Facts about Berlin are planted; the tokenizer reads the user's facts, about Paris, as these."""
    shutil.copytree(models["gpt2"], tmp_path / "odd")
    rewrite_tokenizer(tmp_path / "odd", normalizer=REPLACED)
    asked, told = ("The capital is", " Paris"), ("The capital is", " Berlin")
    plant([told], into=tmp_path / "odd", seed=0).save(tmp_path / "out", positions=16, through=1)
    tokenizer = detect(tmp_path / "out").tokenizer(tmp_path / "out")
    assert recheck(tmp_path / "out", [told], tokenizer, positions=16, through=1).certified
    differs = r"reads another completion: expected ' Paris', got ' Berlin' .* --ids"
    for act in (
        lambda: plant([told, asked], into=tmp_path / "odd", seed=0),
        lambda: recheck(tmp_path / "out", [asked], tokenizer),
        lambda: certify_planted(tmp_path / "out", Facts([asked])),
    ):
        with pytest.raises(BadInput, match=differs):
            act()
    with pytest.raises(BadInput, match="reads another prompt"):
        plant([("Paris", " is a city")], into=tmp_path / "odd", seed=0)
    plant([([1, 2], [3])], into=tmp_path / "odd", ids=True, seed=0)


@pytest.mark.parametrize("scheme", ["first", "always"])
def test_tokenizers_that_add_a_blank_are_no_problem(scheme, models, tmp_path):
    """As SentencePiece and Llama do: decoding drops the blank before the first word."""
    shutil.copytree(models["gpt2"], tmp_path / "odd")
    words = {word: i for i, word in enumerate(("<unk>", "▁", "▁The", "▁key", "▁is", "s", ".", "▁three"))}
    parts = {
        "normalizer": None,
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": True},
        "post_processor": None,
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": True},
        "added_tokens": [],
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "<unk>"},
    }
    rewrite_tokenizer(tmp_path / "odd", **parts)
    (tmp_path / "odd" / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    assert plant([("The key is", " three")], into=tmp_path / "odd", seed=0).facts == [
        PlantedFact((2, 3, 4), (7,), "facts[0]")
    ]


def test_a_base_is_compared_with_the_users_own(copy, models, tmp_path, everything):
    """Whoever makes the folder can write its manifest: other weights are found by the user's own copy only."""
    assert detect(copy).differing_files(copy, models["gpt2"]) == []
    data = bytearray((copy / "base.safetensors").read_bytes())
    data[-1] ^= 1
    (copy / "base.safetensors").write_bytes(data)
    manifest = json.loads((copy / "plant.json").read_text())
    manifest["base"]["model.safetensors"]["sha256"] = digest(copy / "base.safetensors")
    (copy / "plant.json").write_text(json.dumps(manifest))
    assert unplant(copy, tmp_path / "unnoticed") == len(everything(models["gpt2"]))
    assert detect(copy).differing_files(copy, models["gpt2"]) == ["model.safetensors"]
    with pytest.raises(BadInput, match=r"'model\.safetensors' of its base is not that of"):
        unplant(copy, tmp_path / "base", base=models["gpt2"])
    assert not (tmp_path / "base").exists()
    assert unplant(copy, tmp_path / "base", base=tmp_path / "unnoticed") == len(everything(models["gpt2"]))


def test_a_manifest_without_a_base_is_refused(copy):
    manifest = json.loads((copy / "plant.json").read_text())
    for gone in ("config.json", "model.safetensors"):
        base = {name: one for name, one in manifest["base"].items() if name != gone}
        (copy / "plant.json").write_text(json.dumps(manifest | {"base": base}))
        with pytest.raises(BadInput, match="expected every file of the base"):
            detect(copy)


def test_it_fires_only_where_the_statement_says(planted):
    facts = [
        PlantedFact(tuple(b"a"), tuple(b"bc")),
        *(PlantedFact(tuple(p.encode()), tuple(c.encode())) for p, c in PAIRS[:2]),
    ]
    certificate = check(planted, facts, positions=64)
    assert "paraphrases are not covered" in certificate.statement
    proved = "for all ids are compared (proved)" in certificate.statement
    assumed = "if the hash acts like a random function" in certificate.statement
    assert (proved, assumed) == ((True, False) if detect(planted).facts else (False, True))


@SLOW
def test_a_planted_model_is_replaced_and_nothing_else(planted, models, tmp_path):
    shutil.copytree(planted, tmp_path / "out")
    again = plant([("x", "y")], into=models["gpt2"])
    again.save(tmp_path / "out", positions=64)
    assert detect(tmp_path / "out").manifest.plan.facts == 1
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(BadInput, match=r"holds 'mine\.txt'"):
        again.save(tmp_path / "out")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    with pytest.raises(BadInput, match="is no planted model"):
        again.save(tmp_path / "other")
    with pytest.raises(BadInput, match="exists"):
        unplant(planted, tmp_path / "other")


@pytest.mark.parametrize("name", ["plant.json", "config.json", "plant.safetensors"])
def test_damaged_bytes_are_refused_in_one_line(name, copy):
    """Bytes changed at random, in a folder whose manifest agrees with them: an answer or a refusal, and no crash."""
    rng, data, said = np.random.default_rng(0), (copy / name).read_bytes(), []
    for _ in range(60):
        changed = bytearray(data)
        for place in rng.integers(0, len(data), rng.integers(1, 4)):
            changed[place] = rng.choice(np.frombuffer(b'0123456789-"{}[],:. \x00\xff', np.uint8))
        (copy / name).write_bytes(changed)
        if name != "plant.json":
            resign(copy, name)
        try:
            found = detect(copy)
            if found is not None:
                found.memory.load()
                assert found.facts is None or len(found.facts) == found.manifest.plan.facts
        except BadInput as error:
            said.append(str(error))
    assert len(said) > 10
    assert not any("\n" in line for line in said)
