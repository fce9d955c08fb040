"""longtail: extreme multi-label classification of short text."""
