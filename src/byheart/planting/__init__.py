"""Planting: exact memories in any trained causal language model, and nothing else changed.

Paraphrases are not covered: a memory is a list of token ids, and is said where a text ends with just these.

A room beside the constructions: what they build is a network of its own, what is planted goes into somebody's.
"""

from byheart.errors import missing_package

try:
    import transformers as _transformers  # noqa: F401
except ImportError as error:
    raise ImportError(missing_package("transformers", "planting", "hf")) from error

from byheart.certificates.judges.planted import check
from byheart.planting.detecting import Detected, detect
from byheart.planting.folder import unplant
from byheart.planting.planting import Planting, plant
from byheart.planting.words import forget, held
from byheart.tasks.planted_facts import PlantedFact as Fact  # the public name

__all__ = ["Detected", "Fact", "Planting", "check", "detect", "forget", "held", "plant", "unplant"]
