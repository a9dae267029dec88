"""Files of every kind, damaged by the thousand: what Byheart makes of them.

``python -m tests.fuzz --count 5000 --seed 7`` mutates networks, tasks, certificates, texts and runs, and gives them to
the commands. ``--flips 5000`` changes weights instead, and holds every verdict against an evaluation of its own.
``--used 2000`` changes what lies in a network's folder; whatever is certified nevertheless is asked of transformers and
of verify.py. A finding is named by its number; ``--only NUMBER`` repeats it and keeps its files.
"""
