"""The named algorithms, each a short page of parts."""
