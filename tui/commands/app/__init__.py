"""Commands that open or serve the dashboard, run the emulator, or serve coding agents."""
