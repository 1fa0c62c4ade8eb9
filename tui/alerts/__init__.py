"""Notify users who are looking elsewhere: which findings are new, their text, and how they are delivered."""
