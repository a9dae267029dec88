"""``byheart plant``, ``unplant`` and ``detect``: what they print, and what they refuse in one line."""

import json
import shutil

import pytest

pytest.importorskip("transformers")

from byheart.tasks.tokenizers import Bytes

LINES = [{"prompt": "The key is", "completion": " 3."}, {"prompt": "門", "completion": "鍵"}]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    from byheart.networks.planted.base import quiet

    place = tmp_path_factory.mktemp("models") / "model"
    sizes = {"n_positions": 64, "n_embd": 8, "n_layer": 1, "n_head": 1}
    torch.manual_seed(0)
    with quiet():
        GPT2LMHeadModel(GPT2Config(vocab_size=257, bos_token_id=256, eos_token_id=256, **sizes)).save_pretrained(place)
    for name, data in Bytes().files().items():
        (place / name).write_bytes(data)
    return place


@pytest.fixture
def here(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(model, "model")
    (tmp_path / "facts.jsonl").write_text("\n".join(map(json.dumps, LINES)), encoding="utf-8")
    return tmp_path


QUICK = ("--positions", "64", "--seed", "0")


def test_planted_detected_checked_and_given_back(here, run, everything):
    said = run("plant", "facts.jsonl", "--into", "model", "-o", "out", *QUICK)
    assert said.code == 0, said.err
    assert "certified: 6 of 6 answers right" in said.out
    found = run("detect", "out")
    assert "2 facts planted, whole keys" in found.out
    assert "'The key is' → ' 3.'  (words 1 to 5)" in found.out
    (here / "text.txt").write_text("I said: The key is here", encoding="utf-8")
    assert "after 18 tokens, …': The key is': says ' '" in run("detect", "out", "--scan", "text.txt").out
    assert [one["store"] for one in run("detect", "out", "--json").json["listed"]] == [[0, 1], [1, 5]]
    assert run("detect", "out", "--check", "facts.jsonl", "--positions", "64").code == 0
    (here / "facts.jsonl").write_text(json.dumps(LINES[0]), encoding="utf-8")
    wrong = run("detect", "out", "--check", "facts.jsonl", "--positions", "64")
    assert (wrong.code, "1 facts are planted that were not given" in wrong.out) == (1, True)
    assert "if the facts were planted with --stop: say so" in wrong.out
    given_back = run("unplant", "out", "-o", "back")
    assert (given_back.code, "as plant.json says that it was before planting" in given_back.out) == (0, True)
    assert everything(here / "back") == everything(here / "model")
    compared = run("unplant", "out", "-o", "again", "--base", "model")
    assert (compared.code, "each as in model (SHA-256 compared)" in compared.out) == (0, True)
    assert "the base is model: " in run("detect", "out", "--base", "model").out
    (here / "model" / "tokenizer.json").write_text("{}")
    other = run("detect", "out", "--base", "model", "--json")
    assert (other.code, other.json["base_differs"]) == (1, ["tokenizer.json"])
    assert run("unplant", "out", "-o", "third", "--base", "model").code == 2
    assert "nothing planted" in run("detect", "back").out


@pytest.mark.slow
def test_json(here, run):
    said = run("plant", "facts.jsonl", "--into", "model", "-o", "out", *QUICK, "--bits", "30", "--stop", "--json").json
    assert (said["facts"], said["tokens"], said["mode"], said["bits"]) == (2, 8, "print", 30)
    assert said["certificate"]["certified"]
    found = run("detect", "out", "--json").json
    assert (found["planted"], found["facts"], found["listed"]) == (True, 2, None)
    assert run("unplant", "out", "-o", "back", "--json").json["files"] == 5
    assert run("detect", "back", "--json").json == {"planted": False}


@pytest.mark.slow
def test_csv_and_jsonl_are_planted_alike(here, run):
    (here / "facts.csv").write_text('completion,prompt\n" 3.",The key is\n鍵,門\n', encoding="utf-8")
    outs = [run("plant", f"facts.{kind}", "--into", "model", "-o", kind, *QUICK) for kind in ("csv", "jsonl")]
    assert [said.code for said in outs] == [0, 0]
    assert (here / "csv/plant.safetensors").read_bytes() == (here / "jsonl/plant.safetensors").read_bytes()


CONTRADICTION = [*LINES, {"prompt": "The key is 3", "completion": "!"}]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (CONTRADICTION, "facts.jsonl line 1 and facts.jsonl line 3 contradict each other"),
        ([*LINES, {"prompt": "x", "completion": ""}], "facts.jsonl line 3: the completion is empty"),
        ([*LINES, {"prompt": "", "completion": "x"}], "facts.jsonl line 3: the prompt is empty"),
        ([*LINES, {"prompt": "x"}], "facts.jsonl line 3: found prompt; expected prompt and completion"),
        (
            [*LINES, {"prompt": [1], "completion": [2]}],
            "facts.jsonl line 1 is text, and facts.jsonl line 3 has token ids",
        ),
        ([{"prompt": "x" * 80, "completion": "y"}], "has 81 tokens; expected at most 64, which the model reads"),
        ([], "there are no facts"),
    ],
)
def test_facts_that_cannot_be_planted(lines, said, here, run, everything):
    (here / "facts.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    before = everything(here)
    assert said in run("plant", "facts.jsonl", "--into", "model", "-o", "out", *QUICK).complaint
    assert everything(here) == before


def break_config(**changes):
    def change(here):
        config = json.loads((here / "model/config.json").read_text())
        (here / "model/config.json").write_text(json.dumps(config | changes))

    return change


def remove(*names):
    def change(here):
        for name in names:
            (here / "model" / name).unlink()

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (remove("tokenizer.json", "tokenizer_config.json"), "model: has no tokenizer; put its tokenizer.json there"),
        (remove("config.json"), "model: has no config.json; expected the folder of a causal language model"),
        (remove("model.safetensors"), "model: has no model.safetensors and no model.safetensors.index.json"),
        (break_config(model_type="vit"), "model: 'vit' is no causal language model that transformers knows"),
        (break_config(model_type=None), "model_type is None; expected that of a causal language model"),
        (break_config(vocab_size=100), "the prompt has token 104; expected 0 to 99, as the model has"),
        (break_config(vocab_size="many"), "vocab_size is 'many'; expected a number of tokens"),
        (break_config(n_embd=16), "cannot be loaded by transformers"),
        (break_config(n_layer=10**9), "n_layer is 1,000,000,000, and the files hold"),
        (break_config(vocab_size=1 << 24), "vocab_size is 16,777,216, and the files hold"),
        (lambda here: (here / "model/plant.json").touch(), "has a file 'plant.json', whose name is needed"),
    ],
)
def test_models_that_cannot_be_planted_into(change, said, here, run, everything):
    change(here)
    before = everything(here)
    assert said in run("plant", "facts.jsonl", "--into", "model", "-o", "out", *QUICK).complaint
    assert everything(here) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-o", "model/out"), "is also what is read (model)"),
        (("-o", "model"), "is also what is read (model)"),
        (("-o", "mine"), "mine: exists and is no planted model"),
        (("-o", "out", "--bits", "63"), "a fingerprint has 63 bits; expected 1 to 62"),
        (("-o", "out", "--positions", "0"), "positions is 0; expected a whole number, 1 or more"),
        (("-o", "out", "--ids"), "facts.jsonl line 1: the prompt is 'The key is'; expected a list of token ids"),
    ],
)
def test_places_and_settings_that_cannot_be(arguments, said, here, run, everything):
    (here / "mine").mkdir()
    (here / "mine" / "text.txt").write_text("mine")
    before = everything(here)
    assert said in run("plant", "facts.jsonl", "--into", "model", *QUICK[2:], *arguments).complaint
    assert everything(here) == before


def test_folders_in_which_nothing_is_planted(here, run):
    assert "has no plant.json" in run("unplant", "model", "-o", "back").complaint
    assert "has nothing planted" in run("detect", "model", "--check", "facts.jsonl").complaint
    assert "has no config.json" in run("detect", "nowhere").complaint
    assert run("plant", "facts.jsonl", "--into", "model", "-o", "out", *QUICK).code == 0
    assert "has memories planted already" in run("plant", "facts.jsonl", "--into", "out", "-o", "two").complaint
