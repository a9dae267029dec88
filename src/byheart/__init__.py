"""Byheart: the theory of memorization capacity of Transformers, as programs."""
