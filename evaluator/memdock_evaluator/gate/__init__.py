"""A run held against stored baselines: whether it is no worse, by a margin, in all that counts."""
