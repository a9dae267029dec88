"""The course of a stack: from one point where something is due to the next, until all its members are done.

How far it goes between two looks at the clock depends on the time that steps take, and nothing that is computed depends
on how far it goes.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from byheart.lab.ledger import Ledger
from byheart.lab.member import Member, MemberArchitecture, State
from byheart.lab.stack import Stack
from byheart.progress import Report

SHARE_WORTH_LEAVING = 0.125  # of a stack: recording a graph anew takes longer than a few members' steps
SECONDS_A_REPORT = 10.0
SECONDS_A_LOOK = 2.0  # at the clock, and so until a stop is heard of
FIRST_LOOK, STEPS_A_LOOK = 16, 512  # steps: at first, and at most


@dataclass(frozen=True)
class Begun:
    """A stack that is under way: who is in it, how many steps it has done, its weights and both moments [m, P]."""

    places: list[int]
    step: int
    matrices: State


@dataclass(frozen=True)
class PlannedStack:
    """A stack that is still to be made: whose members, in which architecture, and the memory that it will take.

    Where it goes on from something, ``begun`` is that.
    """

    places: list[int]
    architecture: MemberArchitecture
    bytes: int
    begun: Begun | None = None


class Clock:
    """Time, and the steps of all members since it was last told how many."""

    def __init__(self) -> None:
        self.lapped = self.told = time.perf_counter()
        self.steps = 0

    def lap(self) -> float:
        """Seconds since the last lap."""
        before, self.lapped = self.lapped, time.perf_counter()
        return self.lapped - before

    def tell(self, report: Report | None, done: int, of: int, running: "Sequence[Course]") -> None:
        """Report, now and then."""
        now = time.perf_counter()
        if report is not None and running and now - self.told >= SECONDS_A_REPORT:
            rate = self.steps / (now - self.told)
            self.told, self.steps = now, 0
            models, step = sum(len(course.places) for course in running), min(course.stack.step for course in running)
            report(done, of, f"{models:,} at step {step:,}, {rate:,.0f} model-steps/s")


class Course:
    """A stack on its way; what is known of its members goes into the ledger."""

    def __init__(self, stack: Stack, planned: PlannedStack, ledger: Ledger, clock: Clock) -> None:
        self.stack, self.planned, self.ledger, self.clock = stack, planned, ledger, clock
        self.places = list(planned.places)  # of the stack's members among all
        self.last: list[tuple[int, int]] = []  # members that are at their last batches, by both places
        self.look, self.started = FIRST_LOOK, 0.0
        if planned.begun is not None:
            stack.go_on(planned.begun.step, planned.begun.matrices)
            self.planned = replace(planned, begun=None)  # its matrices are in the stack now

    @property
    def over(self) -> bool:
        """Whether all its members are done."""
        return not self.active()

    @property
    def begun(self) -> Begun:
        """As it is now, between two looks; good until the next start."""
        return Begun(list(self.places), self.stack.step, self.stack.matrices())

    def active(self) -> list[tuple[int, int, Member]]:
        """Place in the stack, place among all and member of those that are not done."""
        pairs = zip(self.places, self.stack.members, strict=True)
        return [(index, place, member) for index, (place, member) in enumerate(pairs) if place not in self.ledger.done]

    def start(self) -> None:
        """Begin the steps up to the next one at which a member ends, is evaluated, or comes to its last batches."""
        now, active = self.stack.step, self.active()
        due = {now + self.look}
        for _, _, member in active:
            training = member.training
            due |= {training.steps, training.steps - training.last_batches}
            if training.evaluate_every is not None:
                due.add((now // training.evaluate_every + 1) * training.evaluate_every)
        steps = min(step for step in due if step > now) - now
        self.last = [
            (index, place)
            for index, place, member in active
            if now >= member.training.steps - member.training.last_batches
        ]
        self.started = time.perf_counter()
        self.clock.steps += self.stack.start(steps, measure=bool(self.last)) * len(active)

    def finish(self) -> None:
        """Wait for these steps, and see what is due."""
        _, rights = self.stack.finish()
        self._choose_look(len(rights))
        if self.last:
            for step in rights.double().tolist():  # one by one: the sum is the same, however many there are in a look
                for index, place in self.last:
                    self.ledger.rights[place] += step[index]
        self._evaluate()
        self._leave()

    def _choose_look(self, steps: int) -> None:
        """Twice as many steps until the next look if these took little time, half as many if they took long."""
        seconds = time.perf_counter() - self.started
        if seconds > SECONDS_A_LOOK:
            self.look = max(1, steps // 2)
        elif seconds < SECONDS_A_LOOK / 4 and steps == self.look:
            self.look = min(2 * self.look, STEPS_A_LOOK)

    def _evaluate(self) -> None:
        """Measure the members for which it is time, and note which of them are done."""
        step = self.stack.step
        due = [
            (index, place)
            for index, place, member in self.active()
            if step >= member.training.steps or _divides(member.training.evaluate_every, step)
        ]
        if not due:
            return
        losses, rights = (values.tolist() for values in self.stack.measure())
        share_time([self], self.clock)
        for index, place in due:
            accuracy = None if math.isnan(rights[index]) else rights[index]
            if self.ledger.note(place, losses[index], accuracy) and self.ledger.keep_weights:
                self.ledger.weights[place] = self.stack.weights_of(index)

    def _leave(self) -> None:
        """Finished members leave the stack, if there are enough of them to make a difference."""
        kept = [index for index, _, _ in self.active()]
        if kept and len(self.places) - len(kept) >= SHARE_WORTH_LEAVING * len(self.places):
            self.stack.keep(kept)
            self.places = [self.places[index] for index in kept]


def share_time(running: Sequence[Course], clock: Clock) -> None:
    """Each of the active members has its part in the seconds since time was last shared out."""
    seconds = clock.lap()
    active = [(course, place) for course in running for _, place, _ in course.active()]
    for course, place in active:
        course.ledger.seconds[place] += seconds / len(active)


def _divides(every: int | None, step: int) -> bool:
    return every is not None and step % every == 0
