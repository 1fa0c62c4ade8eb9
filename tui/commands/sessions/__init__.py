"""Commands to log in to a job: interactive sessions, ssh, workstations."""
