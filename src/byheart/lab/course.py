"""The course of a stack: repeat steps up to the next event, until all members are done.

An event is an evaluation, the end of a member, or its first last batch. Between events, the course looks at the clock
after a number of steps that depends on their speed. No result depends on that number.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from byheart.lab.ledger import Ledger
from byheart.lab.member import Member, MemberArchitecture, State
from byheart.lab.stack import Stack
from byheart.progress import Report

SHARE_WORTH_LEAVING = 0.125
"""Smallest share of members that leaves a stack. Recording a CUDA graph anew takes longer than a few members' steps."""
SECONDS_PER_REPORT = 10.0
"""Seconds between two reports of progress."""
SECONDS_PER_LOOK = 2.0
"""Seconds between two looks at the clock, and so until a request to stop is noticed."""
FIRST_LOOK, MAX_LOOK = 16, 512
"""Number of steps until the first look at the clock, and the largest number between two."""


@dataclass(frozen=True)
class BegunStack:
    """A stack under way: places of its members, number of steps, and weights and both moments, [m, P] each."""

    places: list[int]
    step: int
    matrices: State


@dataclass(frozen=True)
class PlannedStack:
    """A stack that is yet to be made: its members' places, its architecture, and the memory that it will take.

    ``begun`` is the state from which it continues, if there is one.
    """

    places: list[int]
    architecture: MemberArchitecture
    bytes: int
    begun: BegunStack | None = None


class Clock:
    """Time, and the number of model-steps since the last report."""

    def __init__(self) -> None:
        self.lapped = self.reported = time.perf_counter()
        self.steps = 0

    def lap(self) -> float:
        """Return the seconds since the last lap."""
        before, self.lapped = self.lapped, time.perf_counter()
        return self.lapped - before

    def tell(self, report: Report | None, done: int, of: int, running: "Sequence[Course]") -> None:
        """Report the progress if :data:`SECONDS_PER_REPORT` have passed."""
        now = time.perf_counter()
        if report is not None and running and now - self.reported >= SECONDS_PER_REPORT:
            rate = self.steps / (now - self.reported)
            self.reported, self.steps = now, 0
            models, step = sum(len(course.places) for course in running), min(course.stack.step for course in running)
            report(done, of, f"{models:,} at step {step:,}, {rate:,.0f} model-steps/s")


class Course:
    """A stack in training. Its measurements go into the ledger."""

    def __init__(self, stack: Stack, planned: PlannedStack, ledger: Ledger, clock: Clock) -> None:
        self.stack, self.planned, self.ledger, self.clock = stack, planned, ledger, clock
        self.places = list(planned.places)  # of the stack's members among all members
        self.last: list[tuple[int, int]] = []  # members in their last batches: place in the stack, place among all
        self.look, self.started = FIRST_LOOK, 0.0
        if planned.begun is not None:
            stack.go_on(planned.begun.step, planned.begun.matrices)
            self.planned = replace(planned, begun=None)  # the stack holds its matrices now

    @property
    def over(self) -> bool:
        """True if all members are done."""
        return not self.active()

    @property
    def begun(self) -> BegunStack:
        """The state between two looks. It is valid until the next start."""
        return BegunStack(list(self.places), self.stack.step, self.stack.matrices())

    def active(self) -> list[tuple[int, int, Member]]:
        """Return the members that are not done: place in the stack, place among all members, and member."""
        pairs = zip(self.places, self.stack.members, strict=True)
        return [(index, place, member) for index, (place, member) in enumerate(pairs) if place not in self.ledger.done]

    def start(self) -> None:
        """Start the steps up to the next event."""
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
        """Wait for the steps, and process the event."""
        _, rights = self.stack.finish()
        self._choose_look(len(rights))
        if self.last:
            for step in (
                rights.double().tolist()
            ):  # one by one, so that the sum does not depend on the number of steps per look
                for index, place in self.last:
                    self.ledger.rights[place] += step[index]
        self._evaluate()
        self._leave()

    def _choose_look(self, steps: int) -> None:
        """Double the number of steps until the next look if these were fast; halve it if they were slow."""
        seconds = time.perf_counter() - self.started
        if seconds > SECONDS_PER_LOOK:
            self.look = max(1, steps // 2)
        elif seconds < SECONDS_PER_LOOK / 4 and steps == self.look:
            self.look = min(2 * self.look, MAX_LOOK)

    def _evaluate(self) -> None:
        """Measure the members that are due, and record which of them are done."""
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
        """Remove finished members from the stack if there are enough of them to make a difference."""
        kept = [index for index, _, _ in self.active()]
        if kept and len(self.places) - len(kept) >= SHARE_WORTH_LEAVING * len(self.places):
            self.stack.keep(kept)
            self.places = [self.places[index] for index in kept]


def share_time(running: Sequence[Course], clock: Clock) -> None:
    """Divide the seconds since the last call equally among all active members."""
    seconds = clock.lap()
    active = [(course, place) for course in running for _, place, _ in course.active()]
    for course, place in active:
        course.ledger.seconds[place] += seconds / len(active)


def _divides(every: int | None, step: int) -> bool:
    return every is not None and step % every == 0
