"""Compile texts, facts or any next-token task into a float Transformer that recites them word for word.

:mod:`.compile` reads the data and follows recipes until one succeeds. Both folders, ``rectangular`` and ``stock``, name
the same steps alike: ``recipe``, ``draft``, ``front``, ``address``, ``table``, ``solve``, ``read``, ``rewrite``. The
rectangular network, from the window of the last n tokens to the next one:

1. ``front``: an order-sensitive hash of the window says *where* to read: a row in each half of a table, a column in
   each of six lanes, a bit offset.
2. ``table``: the second matrix of one feed-forward sublayer is the table. Its entries are the words: 24 bits each, or
   31 with sign and exponent.
3. ``read``: the six words are added up, and a few bits of the sum, those below the offset, are the code of the label
   (``codes``). The unembedding decodes it.

Nothing forces the network to know the contexts: it only has to answer right on them. So the words are the unknowns of
linear systems modulo 2, one equation for each bit of each answer (``planes``), and nearly every bit of the
table carries a bit of an answer. Spatial coupling keeps the systems banded: solving takes time linear in the number of
questions.

Every value in the network is an integer over a power of two that the format holds exactly, so all sums are exact,
whatever their order: the same bits for any batch, number of threads or device. Nothing here is approximate; what is not
claimed is that the network says anything sensible about a context that it was not given.
"""

from byheart.compiler.compile import compile
from byheart.compiler.edit import edit, edit_texts
from byheart.compiler.layouts import CompilerSettings
from byheart.compiler.rectangular.recipe import Recipe

__all__ = ["CompilerSettings", "Recipe", "compile", "edit", "edit_texts"]
