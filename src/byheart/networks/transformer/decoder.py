"""A float Transformer that says one token after the other by compiled code: the same tokens as the module, sooner.

For one token the module makes some 300 calls, and works far longer on making them than on numbers. Here one compiled
loop goes over the sublayers (``kernels``): weights lie in flat arrays, attention keeps what it has read in rings, and
units that are 0 are skipped.

Nothing is taken on trust. As in :mod:`.proved`, all sums are worked out in float64, and beside every sum goes the check
that no rounding can happen in the network's own format, whatever the order; what goes into a sigmoid may be rounded,
far beyond its marks. So by the argument there, what is said is what the module says, and any machine. It is proved
token by token, for the tokens that were read: where the proof fails, the decoder says nothing more, and the module goes
on (:mod:`.generate`). A network that is not exact, whoever made it, is therefore said by the module.

Skipped are: weights of 0; inputs and units that are 0, where what they are multiplied with is finite for certain; and
what :mod:`.program` leaves out, which not all networks have.
"""

from collections.abc import Sequence

import numpy as np

from byheart.networks.transformer import kernels
from byheart.networks.transformer.module import Transformer
from byheart.networks.transformer.program import Array, KernelProgram


class Recital:
    """One recital: what has been read so far, and the network as ``kernels`` wants it."""

    def __init__(self, program: KernelProgram) -> None:
        spec = program.spec
        self.vocab, self.sees, self.labels = spec.vocab, spec.sees, spec.labels
        self._program, self._ring, self._stream = program.arrays, np.zeros(program.ring), np.zeros(spec.stream)
        self._scratch = program.scratch()
        self._place, self._last = 0, -1

    @classmethod
    def of(cls, module: Transformer) -> "Recital | None":
        """None if compiled code cannot read the network (:mod:`.program`)."""
        program = KernelProgram.of(module)
        return None if program is None else cls(program)

    def again(self) -> "Recital":
        """Another recital by the same network."""
        other = object.__new__(Recital)
        other.__dict__.update(self.__dict__)
        other._ring, other._place = np.zeros_like(self._ring), 0
        return other

    def hear(self, tokens: Sequence[int]) -> bool:
        """Read a prompt; whether all of it is proved. Tokens that nothing can see any more are left out."""
        *before, self._last = tokens[-self.sees :]
        self._place = len(before)
        return self._run(before, 0, 0, np.empty((0, self.labels)))[1] == len(before)

    def say(self, count: int) -> list[int]:
        """The next ``count`` tokens; fewer if the one after these is not proved, or the last is a label, no token."""
        said, done = self._run([self._last], count, self._place, np.empty((1, self.labels)))
        self._place += done
        self._last = said[done - 1] if done else self._last
        return said[:done]

    def logits(self, tokens: Sequence[int]) -> Array:
        """After each of ``tokens``, from the beginning [T, C]; nan from the first on that is not proved."""
        found = np.empty((len(tokens), self.labels))
        _, done = self.again()._run(tokens, 0, 0, found)
        found[done:] = np.nan
        return found

    def _run(self, given: Sequence[int], count: int, place: int, logits: Array) -> tuple[list[int], int]:
        said = np.empty(count, np.int64)
        state = (self._program, self._ring, self._stream, self._scratch, logits)
        done = kernels.run(np.array(given, dtype=np.int64), said, place, self.vocab, *state)
        return said.tolist(), int(done)
