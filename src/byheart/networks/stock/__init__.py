"""Models of Hugging Face's own classes, run by Hugging Face's own code: no code of Byheart computes a logit here."""
