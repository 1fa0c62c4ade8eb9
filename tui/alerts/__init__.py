"""Notifies users who are looking elsewhere: which events are new, their text, and how they are delivered."""
