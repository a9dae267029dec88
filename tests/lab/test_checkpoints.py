"""A job that is cut off goes on where it was, to the same bits; and a checkpoint that does not fit is refused."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from byheart.errors import BadInput
from byheart.files.tensors import read_metadata, read_tensors, write_tensors
from byheart.lab import checkpoints, ensemble
from byheart.lab.checkpoints import JobKeys, Keeping, Stopped, fingerprint, hash_of, kept, name_of, opened, session
from byheart.lab.ensemble import _begin, train
from byheart.lab.ledger import BegunStack, Ledger, page_of, read_page
from byheart.lab.member import Member, Training, TrainingOutcome
from byheart.lab.models.dana import AttentionOnly

NETWORK = AttentionOnly(vocab=5, model_dim=3, head_dim=3, heads=2)
TRAINING = Training(
    batch=3, steps=40, learning_rate=0.05, last_learning_rate=0.01, schedule="linear-by-epoch", last_batches=7
)
JOB: JobKeys = ("a", "b")
Notes = list[str]


def member(seed: int, examples: int = 10, network: AttentionOnly = NETWORK, **changes: Any) -> Member:
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(5, (examples, 2), generator=generator)
    data = {"tokens": tokens, "answers": torch.randint(5, (examples,), generator=generator)}
    frozen = changes.pop("frozen", frozenset())
    return Member(network, replace(TRAINING, **changes), seed, data, frozen=frozen)


def members() -> list[Member]:
    """Of all kinds: they stop early and late, are evaluated or not, and are too many for one stack."""
    several = [member(seed, steps=20 + 9 * seed) for seed in range(3)]
    stopping = [member(seed, examples=4, evaluate_every=6, stop_at=0.5, steps=60) for seed in range(3, 6)]
    other = [
        member(6, network=replace(NETWORK, heads=1)),
        member(7, examples=3),
        member(8, frozen=frozenset({"embedding"})),
    ]
    elsewhere = replace(member(9), measured_on=member(10, examples=6).examples)
    long = member(11, batch=7, steps=100, last_batches=100)
    return [*several, *stopping, *other, elsewhere, member(10, learning_rate=1e300), long]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few steps between looks, and few members in a stack."""
    monkeypatch.setattr(ensemble, "FIRST_LOOK", 25)
    monkeypatch.setattr(ensemble, "MAX_LOOK", 25)
    monkeypatch.setattr(ensemble, "MEMBERS_AT_ONCE_ON_CPU", 2)


@pytest.fixture
def keeping(tmp_path: Path) -> Iterator[Keeping]:
    """The time is over as soon as it has begun: every look stops."""
    with session(tmp_path, seconds=0) as found:
        yield found


def stopped_at_every_look(
    own: Callable[[], list[Member]], keeping: Keeping, **how: Any
) -> tuple[list[TrainingOutcome], int]:
    """What comes of them, and how often they were stopped."""
    for stops in range(1000):
        with kept(keeping, JOB) as keeper:
            assert keeper is not None
            try:
                return train(own(), **how), stops
            except Stopped:
                assert keeper.notes == []
    raise AssertionError("it never ends")


def bits(outcomes: list[TrainingOutcome]) -> Any:
    """All that is known of them, but the time: NaN is like NaN."""
    return repr([{**asdict(outcome), "seconds": None, "weights": listed(outcome)} for outcome in outcomes])


def listed(outcome: TrainingOutcome) -> Any:
    return outcome.weights and {name: outcome.weights[name].tolist() for name in sorted(outcome.weights)}


@pytest.mark.usefixtures("looks")
@pytest.mark.parametrize(("dtype", "keep_weights"), [(torch.float64, True), (torch.float32, False)])
def test_stopped_at_every_look_it_comes_to_the_same_bits(
    keeping: Keeping, dtype: torch.dtype, keep_weights: bool
) -> None:
    how = {"dtype": dtype, "keep_weights": keep_weights}
    undisturbed = train(members(), **how)
    outcomes, stops = stopped_at_every_look(members, keeping, **how)
    assert stops > 15
    assert bits(outcomes) == bits(undisturbed)
    assert any(math.isnan(outcome.loss) for outcome in outcomes), "one diverges, and goes on doing so"
    assert len({outcome.steps for outcome in outcomes}) > 4, "they end at different times"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.usefixtures("looks")
@pytest.mark.parametrize("graph", [False, True])
def test_on_a_gpu_it_comes_to_the_same_up_to_rounding(keeping: Keeping, graph: bool) -> None:
    """Stacks run side by side, and all of them are kept at once."""
    how = {"device": "cuda", "dtype": torch.float64, "graph": graph}
    undisturbed = train(members()[:-2], **how)
    outcomes, stops = stopped_at_every_look(lambda: members()[:-2], keeping, **how)
    assert stops > 2
    for one, other in zip(outcomes, undisturbed, strict=True):
        assert (one.steps, one.accuracy) == (other.steps, other.accuracy)
        assert math.isclose(one.loss, other.loss, rel_tol=1e-6)


@pytest.mark.usefixtures("looks")
def test_bits_do_not_depend_on_when_one_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shares of seven that are right, 1/7, 2/7, …, do not add up to the same in every order."""
    often = train(members(), dtype=torch.float64)
    monkeypatch.setattr(ensemble, "FIRST_LOOK", 512)
    monkeypatch.setattr(ensemble, "MAX_LOOK", 512)
    assert bits(train(members(), dtype=torch.float64)) == bits(often)


def test_a_look_takes_as_many_steps_as_its_time_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    start = ensemble.Stack.start

    def noted(self: Any, steps: int, **how: Any) -> int:
        taken.append(steps)
        return start(self, steps, **how)

    monkeypatch.setattr(ensemble.Stack, "start", noted)
    monkeypatch.setattr(ensemble, "SECONDS_PER_LOOK", 1e9)
    train([member(0, steps=60, last_batches=0)])
    assert taken == [16, 32, 12], "little time: twice as many"
    taken.clear()
    monkeypatch.setattr(ensemble, "SECONDS_PER_LOOK", 0.0)
    train([member(0, steps=20, last_batches=0)])
    assert taken == [16, 4], "or half as many, 8, as far as there are"


@pytest.mark.usefixtures("looks")
def test_the_seconds_of_all_sessions_count(keeping: Keeping) -> None:
    with kept(keeping, JOB) as first, pytest.raises(Stopped):
        train(members())
    with kept(keeping, JOB) as second, pytest.raises(Stopped):
        train(members())
    assert first is not None
    assert second is not None
    assert first.earlier == 0
    assert 0 < second.earlier < second.seconds


def test_nothing_is_kept_where_nobody_asks_and_by_who_does_not_see_the_folder(tmp_path: Path) -> None:
    own = [member(0)]
    undisturbed = bits(train(own))
    with session(tmp_path, seconds=0) as found:
        for elsewhere in (replace(found, folder=tmp_path / "nowhere"), replace(found, session="another")):
            with kept(elsewhere, JOB) as keeper:
                assert bits(train(own)) == undisturbed, "it is not stopped either"
            assert keeper is not None
            assert keeper.notes == []
    assert [*tmp_path.iterdir()] == []


@pytest.mark.usefixtures("looks")
def test_where_it_cannot_be_written_training_goes_on(keeping: Keeping, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints, "write_tensors", full)
    with kept(keeping, JOB) as keeper:
        outcomes = train([member(0)])
    assert keeper is not None
    assert "not kept, and the job goes on without checkpoints" in keeper.notes[0]
    assert "No space left on device" in keeper.notes[0]
    assert len(keeper.notes) == 1
    assert bits(outcomes) == bits(train([member(0)]))


@pytest.mark.usefixtures("looks")
def test_each_ensemble_of_a_job_has_a_checkpoint_of_its_own(keeping: Keeping) -> None:
    def work() -> list[TrainingOutcome]:
        return [*train([member(0)]), *train([member(1)])]

    undisturbed = work()
    names = set[str]()
    for _ in range(100):
        with kept(keeping, JOB):
            try:
                outcomes = work()
                break
            except Stopped:
                names |= {path.name for path in checkpoints.files_in(keeping.folder)}
    assert bits(outcomes) == bits(undisturbed)
    assert names == {f"{name_of(JOB)}-{number}.safetensors" for number in (1, 2)}


def test_a_page_by_hand() -> None:
    """One model of 4 steps, evaluated every 2, at step 3: one evaluation, and one of the two last batches right."""
    training = replace(TRAINING, steps=4, evaluate_every=2, last_batches=2, loss="mean-square")
    ledger = Ledger([replace(member(0), training=training)], keep_weights=False)
    ledger.note(0, 0.5, None)
    ledger.rights[0], ledger.seconds[0] = 1.0, 0.25
    matrices = (torch.ones(1, 6), torch.zeros(1, 6), torch.zeros(1, 6))
    page = page_of(ledger, [BegunStack([0], 3, matrices)])
    assert page.about == {"stacks": [{"places": [0], "step": 3}]}
    assert {name: array.tolist() for name, array in page.arrays.items() if "stack" not in name} == {
        "rights": [1.0],
        "seconds": [0.25],
        "evaluations": [1],
        "history": [[0.5, pytest.approx(math.nan, nan_ok=True)]],
    }
    again = Ledger(ledger.members, keep_weights=False)
    [begun] = read_page(page, again, torch.float32)
    assert (again.history, again.done, begun.places, begun.step) == ([[(2, 0.5, None)]], set(), [0], 3)
    right = replace(page, arrays={**page.arrays, "history": np.array([[0.5, 1.0]])})
    with pytest.raises(BadInput, match="model 0 has an accuracy of 1"):
        read_page(right, Ledger(ledger.members, keep_weights=False), torch.float32)


# Files that are anybody's

Arrays = dict[str, NDArray[Any]]
About = dict[str, Any]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keeping]:
    with session(tmp_path_factory.mktemp("run"), seconds=0) as found:
        yield found


@pytest.fixture(scope="module")
def content(place: Keeping) -> bytes:
    """A checkpoint of four models in two stacks: the first is over, the second has begun."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ensemble, "FIRST_LOOK", 10)
        patch.setattr(ensemble, "MEMBERS_AT_ONCE_ON_CPU", 2)
        for _ in range(9):
            with kept(place, JOB), pytest.raises(Stopped):
                train(hostile_members(), **HOW)
        [path] = checkpoints.files_in(place.folder)
        [stack] = json.loads(read_metadata(path)["byheart"])["stacks"]
        assert (stack["places"], 8 < stack["step"] < 32) == ([2, 3], True)
        return path.read_bytes()


@pytest.fixture
def file(place: Keeping, content: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(ensemble, "MEMBERS_AT_ONCE_ON_CPU", 2)
    path = place.folder / f"{name_of(JOB)}-1.safetensors"
    path.write_bytes(content)
    yield path
    path.unlink()


HOW: dict[str, Any] = {"dtype": torch.float64, "keep_weights": True}


def hostile_members() -> list[Member]:
    return [member(seed, evaluate_every=8, last_batches=20) for seed in range(4)]


def rewritten(path: Path, change: Callable[[About, Arrays], object]) -> None:
    about = json.loads(read_metadata(path)["byheart"])
    arrays = {name: array.copy() for name, array in read_tensors(path, ("F64", "I64")).items()}
    change(about, arrays)
    about["arrays"] = hash_of(arrays)
    write_tensors(path, arrays, {"byheart": json.dumps(about)})


def without(name: str) -> Callable[[About, Arrays], object]:
    return lambda _, arrays: arrays.pop(name)


def put(name: str, value: Any) -> Callable[[About, Arrays], object]:
    return lambda _, arrays: arrays.update({name: np.array(value)})


def changed(name: str, how: Callable[[Any], Any]) -> Callable[[About, Arrays], object]:
    return lambda _, arrays: arrays.update({name: how(arrays[name])})


def stack(**changes: Any) -> Callable[[About, Arrays], object]:
    return lambda about, _: about["stacks"][0].update(changes)


def said(**changes: Any) -> Callable[[About, Arrays], object]:
    return lambda about, _: about.update(changes)


HOSTILE: list[tuple[Callable[[About, Arrays], object], str]] = [
    (said(format="byheart-checkpoint-0"), "byheart-checkpoint-1"),
    (said(more=1), "byheart-checkpoint-1"),
    (said(keys=["a", "c"]), "its keys are those of another job"),
    (said(keys=[["a"], "b"]), "its keys are not a list of different texts"),
    (said(keys=["a", "b", "a"]), "its keys are not a list of different texts"),
    (said(models="0" * 64), "it belongs to other models"),
    (said(seconds=math.nan), "NaN found; expected finite numbers"),
    (said(seconds=-1), "its seconds are not a number"),
    (said(stacks=3), "stacks are not a list"),
    (said(stacks=[3]), "a stack is not an object of places and step"),
    (said(stacks=[]), "has begun, and is not in a stack"),
    (stack(step=math.nan), "NaN found; expected finite numbers"),
    (stack(step=0), "at step 0"),
    (stack(step=1.5), "at step 1.5"),
    (stack(step=True), "at step True"),
    (stack(step=10**12), "times by step 1000000000000"),
    (stack(step=7), "times by step 7"),
    (stack(places=[2, 2]), "a stack has places [2, 2]"),
    (stack(places=[3, 2]), "a stack has places [3, 2]"),
    (stack(places=[2, 4]), "a stack has places [2, 4]"),
    (stack(places=[2, -1]), "a stack has places [2, -1]"),
    (stack(places=[2]), "'stack.0.0' is float64 [2, "),
    (stack(places=[0, 1], step=40), "a stack has no model that is not done"),
    (without("stack.0.1"), "'stack.0.1' is missing"),
    (without("rights"), "'rights' is missing"),
    (without("member.0.embedding"), "'member.0.embedding' is missing"),
    (put("stack.1.0", [[0.0]]), "it holds 'stack.1.0'"),
    (put("rights", [math.nan] * 4), "rights or seconds are not numbers"),
    (put("rights", [21.0] * 4), "rights or seconds are not numbers"),
    (put("seconds", [math.inf] * 4), "rights or seconds are not numbers"),
    (put("rights", [0.0] * 3), "'rights' is float64 [3]; expected float64 [4]"),
    (put("evaluations", [5, 5, 1, -1]), "evaluated more often than its training allows"),
    (put("evaluations", [5, 5, 2**62, 2**62]), "evaluated more often than its training allows"),
    (put("evaluations", [5.0, 5.0, 1.0, 1.0]), "'evaluations' is float64 [4]; expected int64 [4]"),
    (put("history", [[0.0, 0.0]]), "'history' is float64 [1, 2]"),
    (changed("history", lambda array: array - [0, -1]), "has an accuracy of 1"),
    (changed("history", lambda array: array - [0, 2]), "has an accuracy of -"),
    (changed("history", lambda array: array * math.nan), "model 0 has an accuracy of nan"),
    (changed("stack.0.2", lambda array: -1 - array), "negative squares"),
    (changed("stack.0.2", lambda array: array[:, 1:]), "another shape than its weights"),
    (changed("stack.0.0", lambda array: array[0]), "'stack.0.0' is float64 ["),
    (changed("stack.0.0", lambda array: array.astype(np.int64)), "'stack.0.0' is int64 ["),
]


def narrow(_: About, arrays: Arrays) -> None:
    for which in range(3):
        arrays[f"stack.0.{which}"] = arrays[f"stack.0.{which}"][:, 1:]


@pytest.mark.parametrize(("change", "told"), [*HOSTILE, (narrow, "expected models of one kind, with ")])
def test_a_file_that_does_not_fit_is_refused_and_the_job_begins_anew(
    file: Path, place: Keeping, change: Callable[[About, Arrays], object], told: str
) -> None:
    rewritten(file, change)
    check_refused(file, place, told)


def check_refused(file: Path, place: Keeping, told: str) -> None:
    with kept(replace(place, until=None), JOB) as keeper:
        own = hostile_members()
        ledger, planned = _begin(own, torch.device("cpu"), torch.float64, opened(own, torch.float64), keep_weights=True)
    assert keeper is not None
    [note] = keeper.notes
    assert note.startswith(f"{file}: not used, its job begins anew: ")
    assert told in note
    assert keeper.earlier == 0
    assert (ledger.done, ledger.history, ledger.weights) == (set(), [[]] * 4, {})
    assert [(each.places, each.begun) for each in planned] == [([0, 1], None), ([2, 3], None)]


def test_the_same_file_untouched_is_used(file: Path, place: Keeping) -> None:
    """The control: rewritten as it is it is good, and a number of its weights that is changed is seen in the end."""
    rewritten(file, lambda about, arrays: None)
    with kept(replace(place, until=None), JOB) as keeper:
        outcomes = train(hostile_members(), **HOW)
    assert keeper is not None
    assert keeper.notes == []
    assert bits(outcomes) == bits(train(hostile_members(), **HOW))
    rewritten(file, changed("stack.0.0", lambda array: array + 1))
    with kept(replace(place, until=None), JOB):
        assert bits(train(hostile_members(), **HOW)) != bits(outcomes)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "not valid JSON"),
        (b"\xff" * 64, "its header is longer"),
        (b"\x02" + bytes(7) + b"{}", "byheart-checkpoint-1"),
    ],
)
def test_garbage_is_refused(file: Path, place: Keeping, content: bytes, told: str) -> None:
    file.write_bytes(content)
    check_refused(file, place, told)


def test_a_bit_that_has_flipped_is_seen(file: Path, place: Keeping) -> None:
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)
    check_refused(file, place, "its numbers have changed since it was written")


def test_half_a_file_is_refused(file: Path, place: Keeping) -> None:
    file.write_bytes(file.read_bytes()[:-8])
    check_refused(file, place, "its tensors do not fill its ")


def test_a_link_is_neither_read_nor_written_through(file: Path, place: Keeping, tmp_path: Path) -> None:
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    before = (tmp_path / "elsewhere").read_bytes()
    check_refused(file, place, "is a link")
    with kept(place, JOB) as keeper:
        train(hostile_members(), **HOW)
    assert keeper is not None
    assert "not kept" in keeper.notes[-1]
    assert (tmp_path / "elsewhere").read_bytes() == before


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "checkpoints").symlink_to(tmp_path)
    with pytest.raises(BadInput, match="checkpoints: is a link"), session(tmp_path / "run"):
        raise AssertionError
    assert checkpoints.jobs_in(tmp_path / "run" / "checkpoints") == ([], [])


@pytest.mark.parametrize(
    "change",
    [
        lambda own: replace(own, seed=1),
        lambda own: replace(own, training=replace(own.training, learning_rate=0.1)),
        lambda own: replace(own, architecture=replace(own.architecture, heads=1)),
        lambda own: replace(own, frozen=frozenset({"embedding"})),
        lambda own: replace(own, measured_on=own.examples),
        lambda own: replace(own, initial={"embedding": torch.zeros(5, 3)}),
        lambda own: replace(own, constants={"shift": torch.zeros(1)}),
        lambda own: replace(own, examples={name: tensor + 1 for name, tensor in own.examples.items()}),
    ],
)
def test_models_that_differ_in_anything_have_another_fingerprint(change: Callable[[Member], Member]) -> None:
    assert fingerprint([member(0)]) == fingerprint([member(0)])
    assert fingerprint([change(member(0))]) != fingerprint([member(0)])
