"""The emulator's storage: SQLite tables, and files for objects and secrets."""
