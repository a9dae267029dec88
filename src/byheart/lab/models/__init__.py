"""Architectures that are trained, one module a paper."""
