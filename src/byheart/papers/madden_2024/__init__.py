"""Madden, Fox & Thrampoulidis 2024: how many hidden units take the loss to the entropy of the data."""
