"""Tables and pictures: what was built beside what is known.

The room reads tasks, bounds, constructions and certificates; it computes no mathematics of its own.
"""
