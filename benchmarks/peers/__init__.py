"""longtail beside the systems that people use today, on the same data and the same machine."""
