"""Texts that come with Byheart, so that an experiment reads the same everywhere.

``docstrings.txt``: the first ten word-punctuation tokens of documentation strings of the standard library of CPython
3.11.7, different ones, in the order of :func:`byheart.tasks.docstrings.library_docstrings`; a line each, tokens with
blanks between them. They are the work of the authors of Python, under the PSF licence: ``LICENSE`` beside it.
"""

from importlib import resources


def docstrings() -> tuple[str, ...]:
    """The beginnings of 1,100 documentation strings.

    >>> len(docstrings()), docstrings()[0]
    (1100, 'Record of phased - in incompatible language changes . Each')
    """
    text = resources.files(__name__).joinpath("docstrings.txt").read_text(encoding="utf-8")
    return tuple(text.splitlines())
