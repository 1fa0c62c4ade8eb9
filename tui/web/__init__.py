"""The dashboard in a browser: textual-serve behind a token check. Requires the extra ``web``."""
