"""The deploy wizard as data: its questions and the config that the answers make.

A screen and a terminal can ask them.
"""
