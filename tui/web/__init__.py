"""The dashboard in a browser: textual-serve behind a guard. Needs the extra ``web``."""
