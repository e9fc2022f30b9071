"""What `forgetting` and `leaks` share: systems that are also asked to forget, options, results, shares, the end."""
