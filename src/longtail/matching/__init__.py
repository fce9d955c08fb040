"""X-Transformer's matcher: which clusters of labels a text is about."""
