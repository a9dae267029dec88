"""Random tasks by their numbers: the same numbers give the same task, from Python and from the command line."""

import pytest

from byheart.cli.main import main
from byheart.errors import BadInput
from byheart.tasks import load
from byheart.tasks.random_tasks import RandomTask

DRAWINGS = [
    RandomTask(examples=9, length=3, vocab=7, labels=3),
    RandomTask(examples=9, length=3, vocab=7, labels=3, seq_to_seq=True, seed=4),
    RandomTask(examples=9, length=2, vocab=None, dim=3),
    RandomTask(examples=9, length=3, vocab=5, distribution=True),
    RandomTask(examples=9, length=3, dim=4, query="shared", real=True),
    RandomTask(examples=9, length=3, dim=4, query="own", real=True, target_dim=5),
]


@pytest.mark.parametrize("drawing", DRAWINGS, ids=lambda drawing: drawing.flags)
def test_the_command_draws_the_same(drawing, tmp_path, capsys):
    path = tmp_path / "t.npz"
    with pytest.raises(SystemExit) as stop:
        main(["task", "random", *drawing.flags.split(), "-o", str(path)])
    assert stop.value.code == 0
    assert load(path).fingerprint == drawing.draw().fingerprint
    assert drawing.draw().fingerprint != RandomTask(**{**vars(drawing), "seed": 99}).draw().fingerprint


@pytest.mark.parametrize(
    ("drawing", "message"),
    [
        (RandomTask(seed=-1), "seed is -1; expected a whole number"),
        (RandomTask(real=True), "--real is for queries"),
        (RandomTask(distribution=True, seq_to_seq=True), "--distribution needs a --vocab and excludes --seq-to-seq"),
        (RandomTask(query="own"), "--query needs a --dim"),
    ],
)
def test_numbers_that_do_not_go_together(drawing, message):
    with pytest.raises(BadInput, match=message):
        drawing.draw()
