"""Commands on the account and this installation: capacity, remotes and login, secrets, settings."""
