"""Commands that open the dashboard, run the emulator, or set up the shell."""
