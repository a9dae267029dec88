"""Parts that constructions share, such as hashes, folds, lookups and readers of vectors, each with its proof."""
