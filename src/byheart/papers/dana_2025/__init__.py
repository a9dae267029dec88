"""Dana, Pydi & Chevaleyre 2025: how many associations attention-only Transformers memorize."""
