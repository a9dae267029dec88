"""Models of Hugging Face's own classes, run by Hugging Face's own code; none of ours computes a logit here."""
