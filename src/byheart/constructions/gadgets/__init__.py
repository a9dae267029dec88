"""What constructions share: hashes, folds, lookups, heads; each with its proof."""
