"""One attempt at a rectangular network: draw a hash, solve for the words, put the network together."""

from dataclasses import replace
from typing import Any

import numpy as np

from byheart.compiler.layouts import Attempt, CompilerSettings, Layout, Resources, Unsolvable
from byheart.compiler.rectangular import staging, storing, table
from byheart.compiler.rectangular.draft import Draft
from byheart.compiler.rectangular.recipe import RECORD, Recipe, first_recipe, next_recipe
from byheart.compiler.rectangular.solve import check_addresses, solve
from byheart.executors import Workplace
from byheart.files.memory import check_memory
from byheart.networks.transformer import Spec
from byheart.tasks.contexts import Contexts


def attempt(recipe: Recipe, contexts: Contexts, resources: Resources, *, free_bits: int = 0) -> Attempt:
    """Follow a recipe. Raise Unsolvable if it fails, and BadInput if there is not enough memory.

    ``free_bits`` numbers the ways to fill the bits that no question asks for.
    """
    from byheart.networks.transformer.transformer_network import from_arrays

    draft, sizes = Draft.of(recipe, contexts), recipe.sizes
    about = {"recipe": recipe.as_json(), **contexts.notes}
    if sizes.shards > 1:
        tensors, about["shards"] = _solve_shards(draft, contexts, resources, free_bits)
    else:
        hint = "split what there is to learn into several networks"
        title = f"to compile {len(contexts):,} questions into one table"
        check_memory(sizes.solving_memory(len(contexts)), title, hint)
        rng = np.random.default_rng([*recipe.draw, free_bits])
        words = solve(draft.questions(contexts), sizes, rng, report=resources.report)
        tensors = {**draft.wiring.tensors, table.TABLE: table.as_floats(words, sizes, draft.wiring.precision)}
    if draft.store is not None:
        entries = draft.entries(contexts)
        draft.wiring.tensor(storing.STORE, entries, entries.shape)
        tensors |= {storing.STORE: draft.wiring.tensors[storing.STORE]}
    if recipe.refuses:
        about["refuse"] = {**recipe.refused_by, "token": draft.spec.labels - 1}
    tensors = {name: tensors[name] for name in draft.spec.shapes()}
    return Attempt(from_arrays(draft.spec, tensors, about=about, files=resources.files), draft.choices(contexts))


RECTANGULAR = Layout(first_recipe, attempt, next_recipe)


def _solve_shards(
    draft: Draft, contexts: Contexts, resources: Resources, free_bits: int
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return all tensors of a network with shards, and a note about each shard."""
    recipe, sizes, count = draft.recipe, draft.sizes, draft.sizes.shards
    records = RECORD * len(contexts) if resources.shelf is None else 0
    needed = sizes.solving_memory(len(contexts) // count) + records
    check_memory(needed, f"to compile {len(contexts):,} questions into {count:,} shards", "give more --shards")
    front = staging.NetworkDraft(draft.wiring, sizes, draft.code, recipe.as_json(), recipe.draw, free_bits)
    workplace = resources.executor or Workplace()
    tensors, notes = staging.solve_shards(front, contexts, workplace, resources.shelf, resources.report)
    return tensors, [note.as_json() for note in notes]


def planned_spec(contexts: Contexts, settings: CompilerSettings, *, times: float = 1.0) -> Spec:
    """Return the shape of the network that is tried first, for ``times`` as many questions. Nothing is solved.

    If counting shows that the first draw fails, the shape is that of the second, unless the questions are a sample. The
    compiled network has another shape in two cases only:

    - The hash must be stirred, and counting does not show it.
    - Three draws or more are needed: the table grows after every second draw that fails.
    """
    recipe = first_recipe(contexts, settings, times=times)
    draft = Draft.of(recipe, contexts)
    try:
        if times == 1 and recipe.sizes.shards == 1:
            check_addresses(draft.questions(contexts))
    except Unsolvable as failure:
        second = replace(next_recipe(recipe, contexts, failure), draw=recipe.draw)
        return Draft.of(second, contexts).spec
    return draft.spec
