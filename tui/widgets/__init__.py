"""Widgets that several screens share. They draw what they are given and ask by message."""
