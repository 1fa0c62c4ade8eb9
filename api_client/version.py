"""Version of the whole project; the build reads it from here."""

__version__ = "0.3.0"
