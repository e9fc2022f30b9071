"""The words that models are asked with, in files: one place to read, to hash and to replace them."""
