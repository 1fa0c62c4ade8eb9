"""The emulator's storage: SQLite tables, one module for each."""
