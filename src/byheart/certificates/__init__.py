"""Is it true? Independent checks of a saved network, and the certificate that states what they found.

Nothing here knows how networks are built: the room reads a network and questions, evaluates one on the other, and
compares. There is one judge for each kind of network, and all of them return one :class:`Verdict`.
"""

from byheart.certificates.certificate import Certificate, read, write
from byheart.certificates.certifying import certify, recheck
from byheart.certificates.controls import Control, controls
from byheart.certificates.judges import judge
from byheart.certificates.verdict import Counterexample, Verdict

__all__ = [
    "Certificate",
    "Control",
    "Counterexample",
    "Verdict",
    "certify",
    "controls",
    "judge",
    "read",
    "recheck",
    "write",
]
