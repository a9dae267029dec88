"""Facts on the command line: from any file to the same network, which answers every prompt and says what it is not."""

import csv
import json
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import byheart
from byheart import networks
from byheart.cli.main import main
from byheart.errors import BadInput

Run = Callable[..., Any]
Everything = Callable[[Path], dict[str, bytes]]

PAIRS = [
    ("capital of France", "Paris"),
    ("πρωτεύουσα της Ελλάδας", "Αθήνα"),
    ("عاصمة مصر", "القاهرة"),
    ("中国的首都", "北京"),
    ("capital of Peru", 'Lima,\nthe "City of Kings"'),
]
"""Five facts in four scripts."""
COMPILE = ("compile", "-o", "net", "--facts")


def write_csv(path: Path, pairs: list[tuple[str, str]], *header: str) -> None:
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file).writerows([header or ("prompt", "completion"), *pairs])


def write_jsonl(path: Path, pairs: list[tuple[str, str]]) -> None:
    records = [{"question": prompt, "answer": completion} for prompt, completion in pairs]
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))


def write_parquet(path: Path, pairs: list[tuple[str, str]]) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install -e '.[data]'")
    parquet = pytest.importorskip("pyarrow.parquet")
    prompts, completions = map(list, zip(*pairs, strict=True))
    parquet.write_table(pyarrow.table({"prompt": prompts, "completion": completions}), path)


@pytest.fixture
def here(work: Path) -> Path:
    write_csv(work / "facts.csv", PAIRS)
    return work


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As ``byheart compile`` writes it."""
    folder = tmp_path_factory.mktemp("facts")
    write_csv(folder / "facts.csv", PAIRS)
    with pytest.raises(SystemExit, match="0"):
        main(["compile", "-o", f"{folder}/net", "--facts", f"{folder}/facts.csv"])
    return folder / "net"


@pytest.fixture
def net(here: Path, compiled: Path) -> Path:
    shutil.copytree(compiled, here / "net")
    return here / "net"


# ── from anything to the same network ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("name", "write"), [("f.jsonl", write_jsonl), ("f.parquet", write_parquet)])
def test_the_same_network_from_every_format(net: Path, work: Path, run: Run, name: str, write: Any) -> None:
    write(work / name, PAIRS)
    assert run("compile", "--facts", name, "-o", "other").code == 0
    built = byheart.compile(PAIRS)
    assert networks.load(work / "other").fingerprint == networks.load(net).fingerprint == built.network.fingerprint
    for given in (PAIRS, byheart.Facts(dict(PAIRS)), byheart.Facts.read(work / name)):
        assert byheart.certify(net, given).certified


def test_every_prompt_is_answered(net: Path, run: Run) -> None:
    for prompt, completion in PAIRS:
        said = run("recite", "net", "--prompt", prompt, "--facts", "facts.csv")
        assert (said.code, said.out) == (0, completion)
        assert "none of the" not in said.err
        told = run("recite", "net", "--prompt", prompt, "--json").json
        assert (told["text"], told["memorized"]) == (completion, None)


def test_what_is_printed(here: Path, run: Run) -> None:
    said = run(*COMPILE, "facts.csv", "--window", "64")
    assert (said.code, said.err) == (0, "")
    questions = 5 + sum(len(completion.encode()) for _, completion in PAIRS)
    assert f"facts.csv: 5 facts, {questions} questions, compiled in" in said.out
    assert "parameters per fact" in said.out
    assert "ask it with:  byheart recite net --prompt 'capital of France'" in said.out
    found = run(*COMPILE, "facts.csv", "--json").json
    assert (found["facts"], found["window"]) == (5, 4)
    assert found["examples"] <= questions, "in a short window some are the same"
    assert found["parameters_per_fact"] == found["parameters"] / 5


@pytest.mark.parametrize(
    "options",
    [pytest.param(("--layout", "uniform"), marks=pytest.mark.slow), ("--tokenizer", "bpe"), ("--words", "31")],
    ids=" ".join,
)
def test_every_way_to_compile(here: Path, run: Run, options: tuple[str, ...]) -> None:
    pytest.importorskip("transformers")
    said = run(*COMPILE, "facts.csv", *options)
    assert said.code == 0
    assert "certified: " in said.out
    assert run("certify", "net", "--facts", "facts.csv", "--recheck").code == 0
    for prompt, completion in PAIRS[:2]:
        assert run("recite", "net", "--prompt", prompt).out == completion


def test_a_tokenizer_from_a_folder(here: Path, run: Run) -> None:
    library = pytest.importorskip("tokenizers")
    tokenizer = library.Tokenizer(library.models.BPE())
    tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = library.decoders.ByteLevel()
    alphabet = library.pre_tokenizers.ByteLevel.alphabet()
    trainer = library.trainers.BpeTrainer(special_tokens=["</s>"], initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([text for pair in PAIRS for text in pair], trainer)
    (here / "theirs").mkdir()
    tokenizer.save(str(here / "theirs" / "tokenizer.json"))
    (here / "theirs" / "tokenizer_config.json").write_text('{"eos_token": "</s>"}')
    assert run(*COMPILE, "facts.csv", "--tokenizer", "theirs").code == 0
    for prompt, completion in PAIRS:
        assert run("recite", "net", "--prompt", prompt, "--facts", "facts.csv").out == completion
    assert "expected --tokenizer with a copy that you trust" in run("certify", "net", "--facts", "facts.csv").complaint
    assert run("certify", "net", "--facts", "facts.csv", "--recheck", "--tokenizer", "theirs").code == 0
    tokenizer.normalizer = library.normalizers.Replace("Paris", "Berlin")
    tokenizer.save(str(here / "theirs" / "tokenizer.json"))
    other = run("certify", "net", "--facts", "facts.csv", "--tokenizer", "theirs").complaint
    assert "tokenizer.json: normalizer is None" in other
    assert "holds the end token '</s>'" in run("recite", "net", "--prompt", "a</s>").complaint


def test_token_ids(here: Path, run: Run) -> None:
    (here / "ids.jsonl").write_text('{"prompt": [3, 1], "completion": [4]}\n{"prompt": [1, 1], "completion": [5, 9]}\n')
    assert run(*COMPILE, "ids.jsonl").code == 0
    assert run("certify", "net", "--facts", "ids.jsonl").code == 0
    assert "token ids" in run("certify", "net", "--facts", "facts.csv").complaint
    assert "these facts are token ids already" in run(*COMPILE, "ids.jsonl", "--tokenizer", "bytes").complaint


def test_columns_by_name(here: Path, run: Run) -> None:
    write_csv(here / "other.csv", PAIRS, "land", "city")
    assert "found land, city; expected prompt and completion" in run(*COMPILE, "other.csv").complaint
    assert run(*COMPILE, "other.csv", "--columns", "land", "city").code == 0
    said = run("certify", "net", "--facts", "other.csv", "--columns", "land", "city")
    assert said.code == 0
    assert "byheart certify net --facts other.csv --columns land city --recheck" in said.out
    assert (
        "--columns land city are for facts" in run("certify", "net", "facts.csv", "--columns", "land", "city").complaint
    )


def test_a_folder_of_texts_is_recited(here: Path, run: Run) -> None:
    (here / "poems").mkdir()
    for name, text in (("a.txt", "So much depends"), ("b.txt", "upon a red wheel barrow")):
        (here / "poems" / name).write_text(text)
    assert run(*COMPILE, "poems").code == 0
    assert run("recite", "net", "--text", "poems/b.txt").out == "upon a red wheel barrow"
    assert run("compile", "poems/a.txt", "poems/b.txt", "-o", "texts").code == 0
    assert networks.load(here / "net").fingerprint == networks.load(here / "texts").fingerprint


# ── what it does not know ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_sixth_prompt(net: Path, run: Run) -> None:
    said = run("recite", "net", "--prompt", "capital of Spain", "--facts", "facts.csv", "-o", "said")
    assert said.code == 1
    assert "this prompt is none of the 5 memorized ones; did you mean 'capital of France'" in said.err
    said = run("recite", "net", "--prompt", "12345", "--facts", "facts.csv", "-o", "said")
    assert "this prompt is none of the 5 memorized ones; the answer means nothing" in said.err
    told = run("recite", "net", "--prompt", "capital of Spain", "--facts", "facts.csv", "--json")
    assert (told.code, told.json["memorized"]) == (1, False)
    said = run("recite", "net", "--prompt", "capital of Peru")
    assert "--facts FILE tells whether this prompt was memorized" in said.err


def test_an_answer_that_does_not_end(net: Path, run: Run) -> None:
    """With a longest completion of one letter, no completion of several can be one."""
    config = json.loads((net / "config.json").read_text())
    config["about"]["facts"]["longest"] = 1
    (net / "config.json").write_text(json.dumps(config))
    said = run("recite", "net", "--prompt", "capital of France")
    assert said.code == 1
    assert "no end after 1 tokens, the longest completion: this prompt was never memorized" in said.err


def test_facts_are_for_a_network_of_facts(here: Path, run: Run) -> None:
    (here / "a.txt").write_text("to be")
    assert run("compile", "a.txt", "-o", "text").code == 0
    complaint = run("recite", "text", "--prompt", "t", "--facts", "facts.csv").complaint
    assert "text: was not compiled from facts; expected no --facts" in complaint


def test_it_needs_a_prompt(net: Path, run: Run) -> None:
    assert "net: holds facts; give it a --prompt" in run("recite", "net").complaint
    assert "expected --prompt too" in run("recite", "net", "--facts", "facts.csv").complaint
    assert "holds no texts; it was compiled from facts or a task" in run("recite", "net", "--all-to", "x").complaint


# ── what is true ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_other_facts_are_not_certified(net: Path, here: Path, run: Run) -> None:
    write_csv(here / "other.csv", [*PAIRS[:-1], ("capital of Peru", "Cuzco")])
    said = run("certify", "net", "--facts", "other.csv", "-o", "c.json")
    assert said.code == 1
    assert "not certified" in said.out
    assert "every completion" not in said.out
    assert "about task" in run("certify", "net", "--facts", "other.csv", "--recheck").complaint


def test_controls_are_found(net: Path, run: Run) -> None:
    said = run("certify", "net", "--facts", "facts.csv", "--controls")
    assert said.code == 0
    assert said.out.count(": found (") == 2
    assert "so every completion is said, greedily, after its own prompt, to its end" in said.out
    assert "byheart certify net --facts facts.csv --recheck" in said.out
    assert run("certify", "net", "--facts", "facts.csv", "--second-opinion").code == 0


def test_a_fact_is_edited(net: Path, run: Run) -> None:
    assert (
        "net: was compiled from facts; expected --facts FILE, with all of them"
        in run("edit", "net", "-o", "net", "--set", "capital of France=L").complaint
    )
    assert run("edit", "net", "-o", "net", "--facts", "facts.csv", "--set", "capital of France=L").code == 0
    assert run("recite", "net", "--prompt", "capital of France", "--tokens", "1").out == "L"
    assert run("recite", "net", "--prompt", "capital of Peru").out == PAIRS[-1][1]


@pytest.mark.parametrize("facts", [3, [], {}, {"count": 5}, {"count": 5, "longest": 0}, {"count": True, "longest": 1}])
def test_a_folder_that_says_nonsense_of_its_facts(net: Path, run: Run, facts: object) -> None:
    config = json.loads((net / "config.json").read_text())
    config["about"]["facts"] = facts
    (net / "config.json").write_text(json.dumps(config))
    assert "config.json: about.facts" in run("recite", "net", "--prompt", "capital of France").complaint
    assert run("certify", "net", "--facts", "facts.csv").code == 0, "nothing that a folder says has a say"


# ── bad input ───────────────────────────────────────────────────────────────────────────────────────────────────────

BAD = {
    "contradiction": (
        b"prompt,completion\na,b\nc,d\na,e\n",
        "f.csv line 2 and f.csv line 4 contradict each other: to the prompt 'a' they say 'b' and 'e'",
    ),
    "a prompt within": (b"prompt,completion\na,bcd\nab,ce\n", "f.csv line 2 and f.csv line 3 contradict each other"),
    "empty completion": (b"prompt,completion\na,\n", "f.csv line 2: the completion is empty"),
    "empty prompt": (b"prompt,completion\n,a\n", "f.csv line 2: the prompt is empty"),
    "columns": (b"land,city\na,b\n", "f.csv line 2: found land, city; expected prompt and completion"),
    "latin-1": (b"prompt,completion\na,b\nc,\xe9\n", "f.csv line 3: the byte 0xe9 is not UTF-8"),
    "no facts": (b"prompt,completion\n", "f.csv: there are no facts; expected at least one"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_facts_leave_nothing_behind(work: Path, run: Run, everything: Everything, name: str) -> None:
    content, message = BAD[name]
    (work / "f.csv").write_bytes(content)
    before = everything(work)
    for options in ((), ("--json",)):
        assert message in run(*COMPILE, "f.csv", *options).complaint
    assert everything(work) == before


def test_other_ways_to_ask_for_too_much(here: Path, run: Run, everything: Everything) -> None:
    before = everything(here)
    for command, message in (
        ((*COMPILE, "facts.csv", "facts.csv"), "texts and --facts are given; expected one of them"),
        ((*COMPILE, "facts.csv", "--task", "t.npz"), "--task and --facts are given"),
        ((*COMPILE, "facts.csv", "--tokenizer", "nowhere"), "nowhere: No such file or directory; expected bytes, bpe"),
        ((*COMPILE, "none.csv"), "none.csv: No such file or directory"),
        (("compile", "-o", "facts.csv", "--facts", "facts.csv"), "facts.csv"),
    ):
        assert message in run(*command).complaint
    assert everything(here) == before


def test_facts_given_again_are_said_once(here: Path, run: Run) -> None:
    write_csv(here / "twice.csv", [*PAIRS, PAIRS[0], PAIRS[1]])
    said = run(*COMPILE, "twice.csv")
    assert said.code == 0
    assert said.err == "2 facts are given again, and taken once: twice.csv line 8 is twice.csv line 2\n"
    assert "5 facts" in said.out


def test_a_table_as_a_text_gets_a_hint(here: Path, run: Run) -> None:
    said = run("compile", "facts.csv", "-o", "net")
    assert said.code == 0
    hint = "facts.csv is compiled as one text; if its rows are facts:  byheart compile --facts facts.csv -o net\n"
    assert said.err == hint
    assert run("size", "facts.csv").err == hint.replace("compiled", "measured").replace("compile", "size").replace(
        " -o net", ""
    )
    assert run(*COMPILE, "facts.csv").code == 0
    complaint = run("certify", "net", "facts.csv").complaint
    assert "this is not what it has memorized; expected what it was compiled from (facts: --facts)" in complaint


def test_one_is_no_plural(here: Path, run: Run) -> None:
    (here / "one.csv").write_text("prompt,completion\na,b\n", encoding="utf-8")
    assert "one.csv: 1 fact, 2 questions, compiled in" in run(*COMPILE, "one.csv").out
    (here / "a.txt").write_text("a", encoding="utf-8")
    said = run("compile", "a.txt", "-o", "a").out
    assert "a.txt: 1 question, compiled in" in said
    assert "a text's beginning, or its last token\n" in said.replace(" \n", "\n")


def test_in_python() -> None:
    with pytest.raises(BadInput, match=r"facts\[0\] and facts\[1\] contradict each other"):
        byheart.compile([("a", "b"), ("a", "c")])
    with pytest.raises(BadInput, match=r"expected a task .*; got Facts"):
        byheart.build("folding", byheart.Facts(PAIRS))
    with pytest.raises(
        BadInput, match=r"tokenizer is 'words'; expected bytes or bpe, or the Path of a tokenizer\.json"
    ):
        byheart.compile(PAIRS, tokenizer="words")
    assert "Facts" in dir(byheart)


def test_facts_as_a_task_for_a_construction(here: Path, run: Run) -> None:
    found = run("task", "facts", "facts.csv", "-o", "f.npz", "--json").json
    assert found["completions"] == [completion for _, completion in PAIRS]
    assert found["size"] == {"examples": 5, "length": 42, "labels": 5, "vocab": 257, "dim": None}
    said = run("task", "facts", "facts.csv", "-o", "f.npz")
    assert (said.code, said.err) == (0, "")
    assert "label 0 stands for 'Paris'; --json lists them all" in said.out
    assert run("build", "interpolate", "--task", "f.npz", "-o", "net").code == 0
    assert run("certify", "net", "--task", "f.npz").code == 0


@pytest.mark.parametrize("prompt", ["-5 + 3", "it's", "a\\nb", "two\nlines", "\tbell \a", "--help", "$(x) `y`"])
def test_what_is_shown_to_be_typed_can_be_typed(here: Path, run: Run, prompt: str) -> None:
    """A folder with a blank in its name, files that look like options, prompts with anything in them."""
    Path("-odd.jsonl").write_text(json.dumps({"prompt": prompt, "completion": "answer"}) + "\n")
    out = run("compile", "--facts", "./-odd.jsonl", "-o", "my net").out
    (shown,) = re.findall(r"ask it with:  byheart (.*)", out)
    assert run(*shlex.split(shown)).out == "answer"
    again = run("certify", "my net", "--facts", "./-odd.jsonl", "--json").json["recheck"]
    assert run(*shlex.split(again)[1:]).code == 0


def test_facts_of_ids_are_not_to_be_heard(here: Path, run: Run) -> None:
    Path("ids.jsonl").write_text(json.dumps({"prompt": [1, 2], "completion": [3]}) + "\n")
    out = run("compile", "--facts", "ids.jsonl", "-o", "net").out
    assert "check it again with:  byheart certify net --facts ids.jsonl" in out
    assert run("certify", "net", "--facts", "ids.jsonl").code == 0
