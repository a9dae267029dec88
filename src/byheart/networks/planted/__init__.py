"""Models with planted memories: the class that runs them, and the folder in which they lie.

The folder holds the base's files as they were, the memory, and a manifest of all files:

=================================  ==================================================================================
``config.json``                    the base's, with another ``model_type``, ``planted_into``, the ``plan``, ``auto_map``
``model.safetensors.index.json``   the file of each tensor, including those of the memory
``base.safetensors``               the base's one file under another name: transformers would prefer the old one to an
                                   index; shards keep their names
``plant.safetensors``              the memory: 32-bit integers
``modeling_plant.py``              the code that runs it, for people who do not have Byheart
``unplanted/``                     the base's config.json and index as they were
``plant.json``                     the manifest: plan, and SHA-256 of every file
``certificate.json``               the certificate
=================================  ==================================================================================

All other files of the base lie there as they were. Every file is hostile until its hash is the manifest's. Byheart
executes nothing in the folder; it runs its own copy of the code.
"""

FORMAT = "byheart-plant-1"
MANIFEST, MEMORY, CODE = "plant.json", "plant.safetensors", "modeling_plant.py"
BASE, BEFORE = "base.safetensors", "unplanted"
CERTIFICATE = "certificate.json"
PREFIX = "plant."
"""Prefix of the names of the memory's tensors in the model."""
OURS = {MANIFEST, MEMORY, CODE, BASE}
"""Names of files that a base must not have already."""
