"""Background tasks that turn the client's streams into frozen snapshots. No widgets here."""
