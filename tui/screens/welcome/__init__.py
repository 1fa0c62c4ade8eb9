"""What a newcomer without a remote sees first."""
