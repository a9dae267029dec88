"""Files: what is written survives, and what is not Byheart's is not lost. The bottom of the house; all rooms use it."""
