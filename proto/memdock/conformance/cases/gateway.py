"""G: gateways."""
