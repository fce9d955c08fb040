"""``longtail demo``: train, evaluate and query a real model, and report on it in one HTML file."""
