"""Files and folders: whole or not at all, one writer at a time, and nothing lost that is not ours."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from byheart.errors import BadInput
from byheart.files import locks, replacement
from byheart.files.locks import Lock, is_locked
from byheart.files.replacement import Replacement, ReplaceRule, is_leftover, recover, workspace_of
from byheart.files.writing import check_apart, check_file, new_file, new_folder, write_text


def ours(folder: Path) -> None:
    """The rule of these tests: a folder that holds nothing but ``weights`` may be replaced."""
    if folder.is_file() or (folder.is_dir() and {path.name for path in folder.iterdir()} - {"weights"}):
        raise BadInput(f"{folder}: is not ours")


def save(folder: Path, text: str, meanwhile: Callable[[], object] = lambda: None, rule: ReplaceRule = ours) -> None:
    with new_folder(folder, rule) as new:
        (new / "weights").write_text(text)
        meanwhile()


def write(path: Path, text: str, meanwhile: Callable[[], object]) -> None:
    with new_file(path) as draft:
        draft.write_text(text)
        meanwhile()


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


@pytest.fixture(params=["exchange", "in two"], autouse=True)
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it where names can be exchanged, if they can be here, and where they cannot."""
    if request.param == "in two":
        monkeypatch.setattr(replacement, "_renameat2", None)


def test_folders_are_new_or_replaced(tmp_path: Path) -> None:
    for text in ("one", "two"):
        save(tmp_path / "deep" / "net", text)
        assert (tmp_path / "deep" / "net" / "weights").read_text() == text
        assert names(tmp_path / "deep") == ["net"]


def test_files_are_new_or_replaced(tmp_path: Path) -> None:
    for text in ("one", "two"):
        write_text(tmp_path / "t.txt", text)
        assert (tmp_path / "t.txt").read_text() == text
        assert names(tmp_path) == ["t.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, BadInput])
def test_an_error_leaves_everything_as_it_was(error: type[BaseException], tmp_path: Path) -> None:
    save(tmp_path / "net", "old")
    write_text(tmp_path / "t.txt", "old")

    def fail() -> None:
        raise error

    for name in ("net", "new/deep/net"):
        with pytest.raises(error):
            save(tmp_path / name, "new", fail)
    with pytest.raises(error):
        write(tmp_path / "t.txt", "new", fail)
    assert names(tmp_path) == ["net", "t.txt"]
    assert (tmp_path / "net" / "weights").read_text() == (tmp_path / "t.txt").read_text() == "old"


def test_the_second_writer_is_told(tmp_path: Path) -> None:
    with new_folder(tmp_path / "net", ours) as new:
        (new / "weights").write_text("first")
        with pytest.raises(BadInput, match=rf"net: Byheart process {os.getpid()} on .* is writing there; wait for it"):
            save(tmp_path / "net", "second")
    with new_file(tmp_path / "t.txt") as draft:
        draft.write_text("first")
        with pytest.raises(BadInput, match=r"t\.txt: Byheart process .* is writing there"):
            write_text(tmp_path / "t.txt", "second")
    assert (tmp_path / "net" / "weights").read_text() == (tmp_path / "t.txt").read_text() == "first"
    assert names(tmp_path) == ["net", "t.txt"]


def test_what_is_put_there_meanwhile_is_kept_and_so_is_what_was_built(tmp_path: Path) -> None:
    save(tmp_path / "net", "old")
    notes = tmp_path / "net" / "notes.txt"
    for number, kept in enumerate(("net-new", "net-new1")):
        with pytest.raises(BadInput, match=rf"net: is not ours; what was to be there is in .*/{kept}$"):
            save(tmp_path / "net", str(number), lambda: notes.write_text("years of work"))
        assert (tmp_path / kept / "weights").read_text() == str(number)
        assert notes.read_text() == "years of work"
        notes.unlink()
    assert (tmp_path / "net" / "weights").read_text() == "old"
    assert names(tmp_path) == ["net", "net-new", "net-new1"]


def test_what_is_put_there_between_the_last_look_and_the_exchange_is_kept(tmp_path: Path) -> None:
    """The rule is asked of what was really moved away."""
    save(tmp_path / "net", "old")
    looks = []

    def slow(folder: Path) -> None:
        ours(folder)
        looks.append(folder)
        if len(looks) == 2:
            (tmp_path / "net" / "notes.txt").write_text("years of work")

    with pytest.raises(BadInput, match=r"/net: is not ours; what was to be there is in .*/net-new$"):
        save(tmp_path / "net", "new", rule=slow)
    assert names(tmp_path) == ["net", "net-new"]
    assert names(tmp_path / "net") == ["notes.txt", "weights"]
    assert (tmp_path / "net" / "weights").read_text() == "old"
    assert (tmp_path / "net-new" / "weights").read_text() == "new"


def test_a_place_that_is_taken_meanwhile(tmp_path: Path) -> None:
    for name, take in (("file", Path.touch), ("link", lambda path: path.symlink_to("elsewhere"))):
        with pytest.raises(BadInput, match=rf"{name}-new"):
            save(tmp_path / name, "new", partial(take, tmp_path / name))
        assert (tmp_path / f"{name}-new" / "weights").read_text() == "new"
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b""


def test_links_are_written_through(tmp_path: Path) -> None:
    save(tmp_path / "net", "old")
    write_text(tmp_path / "t.txt", "old")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "net").symlink_to("../net")
    (tmp_path / "other" / "t.txt").symlink_to("../t.txt")
    save(tmp_path / "other" / "net", "new")
    write_text(tmp_path / "other" / "t.txt", "new")
    assert (tmp_path / "net" / "weights").read_text() == (tmp_path / "t.txt").read_text() == "new"
    assert all(path.is_symlink() for path in (tmp_path / "other").iterdir())
    assert (names(tmp_path), names(tmp_path / "other")) == (["net", "other", "t.txt"], ["net", "t.txt"])


def test_what_is_no_place_for_a_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "nowhere").symlink_to("missing")
    (tmp_path / "round").symlink_to("round")
    before = names(tmp_path)
    for path in (*(tmp_path / name for name in before), Path("/dev/full"), tmp_path / "missing" / "t.txt"):
        with pytest.raises(BadInput, match=path.name):
            write_text(path, "new")
    assert names(tmp_path) == before


def test_the_folder_that_one_is_in_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for folder in (Path(), Path("."), tmp_path / "here"):
        with pytest.raises(BadInput, match="is the folder that you are in"):
            save(folder, "new")
    assert names(tmp_path) == ["here"]


def test_permissions_are_those_of_what_is_replaced(tmp_path: Path) -> None:
    save(tmp_path / "net", "old")
    write_text(tmp_path / "t.txt", "old")
    (tmp_path / "net").chmod(0o750)
    (tmp_path / "t.txt").chmod(0o600)
    save(tmp_path / "net", "new")
    write_text(tmp_path / "t.txt", "new")
    assert (tmp_path / "net").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "t.txt").stat().st_mode & 0o777 == 0o600


def test_what_the_dead_left_is_cleared_away(tmp_path: Path) -> None:
    room = killed_while_writing(tmp_path / "net")
    assert names(room) == ["draft", "lock"]
    assert is_leftover(room)
    save(tmp_path / "net", "new")
    assert names(tmp_path) == ["net"]


KILLED = """
    import os, signal, sys
    from pathlib import Path
    from byheart.files.writing import new_folder
    with new_folder(Path(sys.argv[1]), lambda folder: None) as new:
        (new / "weights").write_text("half")
        os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_while_writing(folder: Path) -> Path:
    found = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), str(folder)], check=False)
    assert found.returncode < 0
    return workspace_of(folder)


def test_half_of_what_was_replaced_is_cleared_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no network any more, but it was one when it was moved away."""

    def whole(folder: Path) -> None:
        if folder.exists() and names(folder) != ["weights"]:
            raise BadInput(f"{folder}: is not ours")

    def stopped(folder: Path) -> None:
        (folder / "weights").unlink()
        raise KeyboardInterrupt

    save(tmp_path / "net", "old", rule=whole)
    monkeypatch.setattr(replacement.shutil, "rmtree", stopped)
    with pytest.raises(KeyboardInterrupt):
        save(tmp_path / "net", "new", rule=whole)
    assert (tmp_path / "net" / "weights").read_text() == "new"
    monkeypatch.undo()
    save(tmp_path / "net", "newer", rule=whole)
    assert names(tmp_path) == ["net"]


def test_a_lock_that_cannot_be_signed_stays_signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = killed_while_writing(tmp_path / "net")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(BadInput, match="net: cannot be written: No space left on device"):
        save(tmp_path / "net", "new")
    assert is_leftover(room)
    monkeypatch.undo()
    save(tmp_path / "net", "new")
    assert names(tmp_path) == ["net"]


def test_a_lock_that_was_removed_before_it_was_taken_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last holder has just gone; another may have made a new one by now."""
    take, taken = locks._take, []

    def late(file: int, kind: int) -> bool:
        if not taken:
            (tmp_path / "lock").unlink()
        taken.append(file)
        return take(file, kind)

    monkeypatch.setattr(locks, "_take", late)
    lock = Lock(tmp_path / "lock")
    assert len(taken) == 2
    assert is_locked(tmp_path / "lock")
    lock.release()
    assert not is_locked(tmp_path / "lock")


def test_all_is_on_the_disk_before_it_takes_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file and folder, then the step, then the folder that the name is in."""
    steps: list[str] = []
    sync, move = os.fsync, Replacement._move

    def synced(file: int) -> None:
        steps.append(os.readlink(f"/proc/self/fd/{file}") if Path("/proc/self/fd").exists() else "")
        sync(file)

    def moved(claim: Replacement, ready: Path) -> None:
        steps.append("step")
        move(claim, ready)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Replacement, "_move", moved)
    save(tmp_path / "net", "new")
    room = workspace_of(tmp_path / "net")
    expected = [room / "draft" / "weights", room / "draft", room, "step", tmp_path]
    if Path("/proc/self/fd").exists():
        assert steps == [str(path) for path in expected]
    assert steps.index("step") == 3


@pytest.mark.parametrize("inside", [["letter"], ["draft"], ["lock", "letter"], ["lock"]])
def test_a_room_of_somebody_else_is_left_alone(inside: list[str], tmp_path: Path) -> None:
    """Hidden, and named like ours, but not laid out or signed like it."""
    room = workspace_of(tmp_path / "net")
    room.mkdir()
    for name in inside:
        (room / name).write_text("Dear")
    with pytest.raises(BadInput, match=r"\.net\.byheart: is in the way, and not Byheart's; move it"):
        save(tmp_path / "net", "new")
    assert names(room) == sorted(inside)
    assert {(room / name).read_text() for name in inside} == {"Dear"}
    assert not is_leftover(room)


@pytest.mark.parametrize("make", [Path.touch, lambda room: room.symlink_to("elsewhere")], ids=["file", "link"])
def test_a_room_that_is_no_folder_is_left_alone(make, tmp_path: Path) -> None:
    make(workspace_of(tmp_path / "net"))
    with pytest.raises(BadInput, match="is in the way"):
        save(tmp_path / "net", "new")
    assert names(tmp_path) == [".net.byheart"]


def test_what_was_moved_away_and_is_not_ours_is_not_cleared_away(tmp_path: Path) -> None:
    """A writer that was killed between the exchange and the look at what came out of it."""
    room = killed_while_writing(tmp_path / "net")
    (room / "draft").rename(room / "ready")
    (room / "ready" / "notes.txt").write_text("years of work")
    for _ in range(2):
        with pytest.raises(BadInput, match=r"ready: is what was at .*net, and is not replaced; move it"):
            save(tmp_path / "net", "new")
    assert (room / "ready" / "notes.txt").read_text() == "years of work"


def test_a_name_that_was_taken_away_by_the_dead_comes_back(tmp_path: Path) -> None:
    for again in (recover, lambda place: Replacement(place, ours).release()):
        room = killed_while_writing(tmp_path / "net")
        (room / "draft").rename(room / "before")
        again(tmp_path / "net")
        assert (tmp_path / "net" / "weights").read_text() == "half"
        save(tmp_path / "net", "new")
        assert names(tmp_path) == ["net"]
        (tmp_path / "net" / "weights").unlink()
        (tmp_path / "net").rmdir()


def test_nothing_comes_back_while_its_writer_lives(tmp_path: Path) -> None:
    claim = Replacement(tmp_path / "net", ours)
    (claim.room / "before").mkdir()
    assert is_locked(claim.room / "lock")
    assert not is_leftover(claim.room)
    with pytest.raises(BadInput, match="is writing there"):
        recover(tmp_path / "net")
    (claim.room / "before").rmdir()
    claim.release()
    assert names(tmp_path) == []


def test_outputs_are_no_inputs(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    text, net = tmp_path / "a.txt", tmp_path / "net"
    text.touch()
    os.link(text, tmp_path / "same.txt")
    (tmp_path / "link.txt").symlink_to("a.txt")
    for out, given in (
        (text, text),
        (tmp_path / "same.txt", text),
        (tmp_path / "link.txt", text),
        (tmp_path / "net" / ".." / "a.txt", text),
        (net / "new.png", net),
        (net, net / "tokenizer.json"),
    ):
        with pytest.raises(BadInput, match="is also what is read"):
            check_apart(out, None, given)
    check_apart(tmp_path / "b.txt", text, net)
    check_apart(tmp_path / "a.txt.png", text)
    check_apart(None, text)
    check_file(tmp_path / "b.txt")


def test_a_room_that_somebody_laid(tmp_path: Path) -> None:
    """Reading a name that is not there moves nothing out of a stranger's folder, and signs no stranger's file."""
    victim = tmp_path / "victim"
    (victim / "before").mkdir(parents=True)
    (victim / "lock").write_text("mine")
    workspace_of(tmp_path / "gone").symlink_to(victim)
    recover(tmp_path / "gone")
    assert (names(victim), (victim / "lock").read_text()) == (["before", "lock"], "mine")
    assert not (tmp_path / "gone").exists()
    with pytest.raises(BadInput, match="is in the way, and not Byheart's"):
        save(tmp_path / "gone", "new")


@pytest.mark.parametrize("planted", ["lock", "before"])
def test_links_in_a_room(tmp_path: Path, planted: str) -> None:
    victim, room = tmp_path / "victim", workspace_of(tmp_path / "net")
    room.mkdir()
    if planted == "lock":
        victim.touch()
        os.link(victim, room / "lock")
    else:
        victim.mkdir()
        (room / "lock").write_text(locks.SIGNATURE)
        (room / "before").symlink_to(victim)
    for act in (recover, lambda place: save(place, "new")):
        with suppress(BadInput):
            act(tmp_path / "net")
    assert not (tmp_path / "net").exists()
    assert victim.is_dir() or victim.read_text() == ""


def test_a_lock_is_not_taken_where_something_else_lies(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("processes of mine")
    os.mkfifo(tmp_path / "pipe")
    for name in ("text", "pipe"):
        with pytest.raises(BadInput, match=f"{name}: is in the way, and no lock of Byheart's"):
            Lock(tmp_path / name)
    assert names(tmp_path) == ["pipe", "text"]
    assert (tmp_path / "text").read_text() == "processes of mine"


def test_a_link_is_no_lock_that_is_held(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to("lock")
    assert not is_locked(tmp_path / "lock")
