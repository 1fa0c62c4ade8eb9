"""Forms as data: their questions, options, defaults and problems.

A screen draws a form, a terminal asks it, options and files fill it. Its result is a config.
"""
