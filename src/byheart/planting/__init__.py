"""Plant exact memories in any trained causal language model, and change nothing else.

Paraphrases are not covered: a memory is a list of token ids, and it is said where a text ends with exactly these.
"""

from byheart.errors import missing_package

try:
    import transformers as _transformers  # noqa: F401
except ImportError as error:
    raise ImportError(missing_package("transformers", "planting", "hf")) from error

from byheart.certificates.judges.planted import check
from byheart.planting.detecting import Detected, detect, forget, held
from byheart.planting.planting import Planting, plant, unplant
from byheart.tasks.planted_facts import PlantedFact as Fact  # the public name

__all__ = ["Detected", "Fact", "Planting", "check", "detect", "forget", "held", "plant", "unplant"]
