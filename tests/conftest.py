"""What every test shares: ``tests/support`` is importable as ``support``."""
