"""One table without a hole: every kind of network, from tasks and from texts, in Python and on the command line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byheart
from byheart.certificates import controls, recheck, write
from byheart.compiler import CompilerSettings
from byheart.constructions import Built
from byheart.networks import count, generate
from byheart.tasks import load

from .conftest import Run

TEXT = "It was the best of times, it was the worst of times, it was the age of wisdom"
UNIFORM = CompilerSettings(layout="uniform")
CASES: dict[str, tuple[Callable[[Any], Built], list[str]]] = {
    "exact": (lambda task: byheart.build("folding", task), ["build", "folding", "--task", "t.npz"]),
    "softmax": (lambda task: byheart.build("dana-2025", task), ["build", "dana-2025", "--task", "t.npz"]),
    "transformer, task": (byheart.compile, ["compile", "--task", "t.npz"]),
    "transformer, text": (byheart.compile, ["compile", "text"]),
    "stock, task": (lambda task: byheart.compile(task, settings=UNIFORM), ["compile", "--task", "t.npz"]),
    "stock, text": (lambda text: byheart.compile(text, settings=UNIFORM), ["compile", "text"]),
}


def asked(case: str, work: Path) -> Any:
    (work / "text").write_text(TEXT)
    return TEXT if case.endswith("text") else load(work / "t.npz")


@pytest.mark.parametrize("case", CASES)
def test_in_python(case: str, work: Path) -> None:
    questions = asked(case, work)
    built = CASES[case][0](questions)
    assert repr(built).startswith("<Built: ")
    assert "\n" not in repr(built)
    assert f"{built.account.dense:,}" in built._repr_html_()
    built.save("net")
    network = byheart.load("net")
    assert network.kind == case.split(",", maxsplit=1)[0]
    assert network.fingerprint == built.network.fingerprint
    assert count(network) == network.account == built.account
    assert network.about["construction"] == built.construction
    certificates = [byheart.certify(subject, questions) for subject in (built, network, "net", Path("net"))]
    for certificate in certificates:
        assert certificate.certified
        assert repr(certificate).startswith("<Certificate: certified: ")
        assert "certified" in certificate._repr_html_()
        write(certificate, Path("c.json"))
        assert recheck("c.json", "net", questions).certified
    assert [lie.found for lie in controls(network, questions, np.random.default_rng(0))] == [True, True]
    if case.endswith("text"):
        prompt, end = network.about["texts"][0]["prompt"], network.about["end"]
        assert bytes([*prompt, *list(generate(network, prompt, end=end))[:-1]]).decode() == TEXT


@pytest.mark.parametrize("case", CASES)
def test_on_the_command_line(case: str, work: Path, run: Run) -> None:
    asked(case, work)
    make = CASES[case][1] + (["--layout", "uniform"] if case.startswith("stock") else [])
    what = make[make.index("--task") :][:2] if "--task" in make else ["text"]
    assert run(*make, "-o", "net").code == 0
    assert run("certify", "net", *what).code == 0
    assert run("certify", "net", *what, "--recheck").code == 0
    told = run("certify", "net", *what, "--controls", "--json").json
    assert told["certified"]
    assert [(lie["name"], lie["found"]) for lie in told["controls"]] == [
        ("shuffled answers", True),
        ("perturbed weight", True),
    ]
    shown = run("show", "net", "--json").json
    assert shown["parameters"] == byheart.load("net").account.dense
    assert sum(part["parameters"] for part in shown["parts"]) == shown["parameters"]
    assert run("show", "net", "--plot", "parts.png").code == 0
    if case.endswith("text"):
        assert run("recite", "net", "-o", "said").code == 0
        assert Path("said").read_text() == TEXT
        assert run("recite", "net", "--all-to", "all").code == 0
        assert Path("all/text").read_text() == TEXT


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_options_of_other_kinds_are_refused(case: str, work: Path, run: Run) -> None:
    questions = asked(case, work)
    CASES[case][0](questions).save("net")
    what = ["text"] if case.endswith("text") else ["--task", "t.npz"]
    for option, value, kind in (
        ("evaluator", "flint", "exact"),
        ("threads", "7", "exact"),
        ("tolerance", "0.1", "softmax"),
    ):
        said = run("certify", "net", *what, f"--{option}", value)
        if case.startswith("softmax") and option == "tolerance":
            assert "the task asks for labels, which are right or wrong" in said.complaint
        elif case.startswith(kind):
            assert said.code == 0
        else:
            assert said.complaint.startswith(f"byheart: {option.replace('-', '_')} is an option for a")


@pytest.mark.parametrize("name", ["exact", "softmax"])
def test_texts_are_no_tasks(name: str, work: Path, run: Run) -> None:
    questions = asked(name, work)
    CASES[name][0](questions).save("net")
    assert "got texts; expected a task" in run("certify", "net", "text").complaint
    assert "texts and --task are given; expected one" in run("certify", "net", "text", "--task", "t.npz").complaint
    assert (
        "the network has no tokenizer; expected one that was compiled"
        in run("recite", "net", "--tokens", "3").complaint
    )
