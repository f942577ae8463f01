"""The version of this package. A file of its own: packaging reads it without running the rest."""

__version__ = "0.1.0"
