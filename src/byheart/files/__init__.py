"""Files: what is read is bounded and checked, what is written survives. The bottom of the house; all rooms use it."""
