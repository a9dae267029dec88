"""Is it true? Independent checks of a saved network, and the certificate that states what they found.

Nothing here knows how networks are built: the room reads a network and a task, evaluates one on the other in exact
arithmetic, and compares.
"""

from byheart.certificates.certificate import Certificate, certify, read, recheck, write
from byheart.certificates.controls import Control, flipped_bit, shuffled_labels
from byheart.certificates.verdict import Counterexample, Evaluator, Verdict, judge

__all__ = [
    "Certificate",
    "Control",
    "Counterexample",
    "Evaluator",
    "Verdict",
    "certify",
    "flipped_bit",
    "judge",
    "read",
    "recheck",
    "shuffled_labels",
    "write",
]
