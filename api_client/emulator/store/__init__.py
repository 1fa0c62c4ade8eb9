"""The emulator's memory: SQLite tables, a module each."""
