"""The workers: one a library, each run by the Python of the environment that has the library."""
