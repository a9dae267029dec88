"""byheart compile --refuse: what was memorized is said, and of anything else, that it is unknown."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from byheart.cli.main import main

Run = Callable[..., Any]
Everything = Callable[[Path], dict[str, bytes]]
FACTS = {
    "capital of France": "Paris",
    "πρωτεύουσα της Ελλάδας": "Αθήνα",
    "عاصمة مصر": "القاهرة",
    "中国的首都": "北京",
    "capital of Peru": "Lima",
}


def write(path: Path) -> None:
    path.write_text("prompt,completion\n" + "".join(f"{prompt},{said}\n" for prompt, said in FACTS.items()))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("refuse")
    write(folder / "facts.csv")
    with pytest.raises(SystemExit, match="0"):
        main(["compile", "-o", f"{folder}/net", "--facts", f"{folder}/facts.csv", "--refuse"])
    return folder / "net"


@pytest.fixture
def net(work: Path, compiled: Path) -> Path:
    write(work / "facts.csv")
    shutil.copytree(compiled, work / "net")
    return work / "net"


def test_memorized_prompts_are_answered(net: Path, run: Run) -> None:
    for prompt, completion in FACTS.items():
        said = run("recite", "net", "--prompt", prompt)
        assert (said.code, said.out) == (0, completion)
        assert "; memorized, or the one other prompt in" in said.err
        assert run("recite", "net", "--prompt", prompt, "--json").json["memorized"] is True
    assert run("certify", "net", "--facts", "facts.csv", "--controls").out.count(": found (") == 2
    assert run("certify", "net", "--facts", "facts.csv", "--recheck").code == 0


@pytest.mark.parametrize(
    "prompt", ["capital of Spain", "importance", "Capital of France", " capital of Peru", "é" * 99]
)
def test_a_sixth_prompt_is_refused(net: Path, run: Run, prompt: str) -> None:
    said = run("recite", "net", "--prompt", prompt)
    assert (said.code, said.out) == (1, "")
    assert said.err.endswith("; unknown: this prompt was never memorized\n")
    told = run("recite", "net", "--prompt", prompt, "--json")
    assert (told.code, told.json["text"], told.json["memorized"]) == (1, "", False)
    said = run("recite", "net", "--prompt", prompt, "--facts", "facts.csv")
    assert "this prompt is none of the 5 memorized ones" in said.err


def test_what_is_printed(work: Path, run: Run) -> None:
    write(work / "facts.csv")
    said = run("compile", "-o", "net", "--facts", "facts.csv", "--refuse", "8")
    questions = len(FACTS) + sum(len(completion.encode()) for completion in FACTS.values())
    assert said.code == 0
    assert "bits in the prints (8 per question, to refuse others)" in said.out
    rate = "answered all the same: 1 in 256, if the hash acts like a random function"
    assert f"any other context: unknown, token 257; {rate}" in said.out.replace("\n", " ")
    found = run("compile", "-o", "net", "--facts", "facts.csv", "--refuse", "8", "--json").json
    assert (found["refuse"], found["bits_in_prints"], found["errors"]) == (8, 8 * questions, 0)
    assert "refuse" not in run("compile", "-o", "net", "--facts", "facts.csv", "--json").json


def test_by_the_whole_key(work: Path, run: Run) -> None:
    write(work / "facts.csv")
    proved = "any other context: unknown, token 257; no other is answered: proved, for all of it is compared"
    assert proved in run("compile", "-o", "net", "--facts", "facts.csv", "--refuse", "key").out
    certify = ("certify", "net", "--facts", "facts.csv")
    said = run(*certify, "--second-opinion", "--sample", "12")
    assert (said.code, proved in said.out, "second opinion: agrees (12 answers right" in said.out) == (0, True, True)
    assert "second opinion: agrees (" in run(*certify, "--second-opinion", "--sample", "3", "--recheck").out
    said = run("recite", "net", "--prompt", "capital of Peru")
    assert (said.code, said.out, said.err.splitlines()[-1].endswith("; memorized")) == (0, "Lima", True)
    assert run("recite", "net", "--prompt", "capital of Perm").code == 1
    assert "knows no --columns" in run(*certify, "--columns", "a", "b", "--second-opinion").complaint
    found = run("compile", "-o", "net", "--facts", "facts.csv", "--refuse", "30", "--json").json
    assert (found["refuse"], found["others"]["by"], found["others"]["proved"]) == (30, "stored print", True)


def test_a_folder_that_only_says_so(net: Path, run: Run) -> None:
    """It refuses by a print of 18 bits, and claims to compare all of a prompt."""
    config = json.loads((net / "config.json").read_text())
    config["about"]["refuse"] = {"by": "key", "token": 257}
    (net / "config.json").write_text(json.dumps(config))
    said = run("certify", "net", "--facts", "facts.csv")
    assert (said.code, "NOT proved, it has no store" in said.out) == (1, True)
    told = run("certify", "net", "--facts", "facts.csv", "--json").json
    assert (told["certified"], told["others"]["proved"]) == (True, False)


def test_a_wrong_answer_is_told_by_its_fact(net: Path, run: Run) -> None:
    (net.parent / "other.csv").write_text("prompt,completion\ncapital of France,Paris\ncapital of Peru,Limb\n")
    said = run("certify", "net", "--facts", "other.csv", "-o", "other.json")
    assert said.code == 1
    assert "(other.csv line 3, after the prompt and 3 tokens of the completion): expected 98, got 97" in said.out
    told = json.loads((net.parent / "other.json").read_text())["counterexample"]
    assert told["where"] == "other.csv line 3, after the prompt and 3 tokens of the completion"


def test_a_fact_is_edited(net: Path, run: Run) -> None:
    assert run("edit", "net", "-o", "net", "--facts", "facts.csv", "--set", "capital of France=L").code == 0
    assert run("recite", "net", "--prompt", "capital of France", "--tokens", "1").out == "L"
    assert run("recite", "net", "--prompt", "capital of Peru").out == "Lima"
    assert "unknown: this prompt was never memorized" in run("recite", "net", "--prompt", "capital of Spain").err


def test_bad_input_leaves_nothing_behind(work: Path, run: Run, everything: Everything) -> None:
    write(work / "facts.csv")
    before = everything(work)
    facts = ("compile", "-o", "net", "--facts", "facts.csv", "--refuse")
    for command, message in (
        ((*facts, "99"), "refuse is 99; expected 1 to 64 bits, or key"),
        ((*facts, "8", "9"), "--refuse is 8 9; expected one number of bits, key, or nothing"),
        ((*facts, "keys"), "--refuse is keys; expected one number of bits, key, or nothing"),
        ((*facts, "--words", "31"), "expected --words 24"),
        (("compile", "facts.csv", "-o", "net", "--refuse", "key"), "expected --refuse with at most 1"),
    ):
        assert message in run(*command).err.splitlines()[-1]
    assert everything(work) == before


NONSENSE = [
    *(3, [], {}, {"bits": 8}, {"bits": 0, "token": 257}, {"bits": 8, "token": 80}, {"bits": 8, "token": 256}),
    *({"bits": 8, "token": True}, {"bits": "8", "token": 257}, {"bits": 10**9, "token": 257}),
]


@pytest.mark.parametrize("refuse", NONSENSE, ids=str)
def test_a_folder_that_says_nonsense(net: Path, run: Run, refuse: object) -> None:
    config = json.loads((net / "config.json").read_text())
    config["about"]["refuse"] = refuse
    (net / "config.json").write_text(json.dumps(config))
    for command in (("recite", "net", "--prompt", "capital of France"), ("certify", "net", "--facts", "facts.csv")):
        assert "config.json: about.refuse" in run(*command).complaint


@pytest.mark.parametrize("refuse", ["auto", 0, -1, 65, 10**9, True, [8]], ids=str)
def test_a_recipe_that_says_nonsense(net: Path, run: Run, refuse: object) -> None:
    config = json.loads((net / "config.json").read_text())
    config["about"]["recipe"]["settings"]["refuse"] = refuse
    (net / "config.json").write_text(json.dumps(config))
    complaint = run("edit", "net", "-o", "net", "--facts", "facts.csv", "--set", "capital of France=L").complaint
    assert "about.recipe is not the recipe of this network" in complaint


def test_a_folder_whose_unknown_is_a_word(work: Path, run: Run) -> None:
    """The last token of a tokenizer's is no token for it: facts that hold it would be told to be unknown."""
    library = pytest.importorskip("tokenizers")
    write(work / "facts.csv")
    tokenizer = library.Tokenizer(library.models.BPE())
    tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = library.decoders.ByteLevel()
    alphabet = library.pre_tokenizers.ByteLevel.alphabet()
    trainer = library.trainers.BpeTrainer(special_tokens=["</s>"], initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(["capital of"], trainer)
    (work / "theirs").mkdir()
    tokenizer.save(str(work / "theirs" / "tokenizer.json"))
    (work / "theirs" / "tokenizer_config.json").write_text('{"eos_token": "</s>"}')
    assert run("compile", "-o", "net", "--facts", "facts.csv", "--tokenizer", "theirs", "--refuse").code == 0
    assert run("recite", "net", "--prompt", "capital of Peru").out == "Lima"
    assert run("recite", "net", "--prompt", "capital of Perm").code == 1
    assert run("compile", "-o", "net", "--facts", "facts.csv", "--tokenizer", "theirs").code == 0
    config = json.loads((work / "net" / "config.json").read_text())
    config["about"]["refuse"] = {"bits": 8, "token": config["spec"]["labels"] - 1}
    (work / "net" / "config.json").write_text(json.dumps(config))
    assert "expected one that the tokenizer has not" in run("recite", "net", "--prompt", "capital of Peru").complaint


def test_texts_that_refuse(work: Path, run: Run) -> None:
    """Facts may be texts alone, which are recited from their beginnings."""
    (work / "poems.jsonl").write_text('{"text": "So much depends"}\n{"text": "upon a red wheel barrow"}\n')
    assert run("compile", "-o", "net", "--facts", "poems.jsonl", "--refuse").code == 0
    assert run("recite", "net").out == "So much depends"
    assert run("recite", "net", "--prompt", "So much d").out == "So much depends"
    said = run("recite", "net", "--prompt", "So little d")
    assert (said.code, said.out) == (1, "")
    assert "unknown: this prompt is not in any of the 2 texts" in said.err
    complaint = run("explore", "net", "-o", "page.html").complaint
    assert "refuses what it has not memorized, which the explorer does not show" in complaint


@pytest.mark.slow
def test_hugging_face_stops_there(net: Path) -> None:
    transformers = pytest.importorskip("transformers")
    import byheart.hf  # noqa: F401 - makes transformers know the network

    model = transformers.AutoModelForCausalLM.from_pretrained(net)
    tokenizer = transformers.AutoTokenizer.from_pretrained(net)
    for prompt, said in (("capital of Peru", [*b"Lima", 256]), ("capital of Perm", [257])):
        asked = tokenizer(prompt, return_tensors="pt")
        found = model.generate(**asked, do_sample=False, max_new_tokens=9)[0, asked["input_ids"].shape[1] :]
        assert found.tolist() == said
        assert tokenizer.decode(found, skip_special_tokens=True) == bytes(said[:-1]).decode()
