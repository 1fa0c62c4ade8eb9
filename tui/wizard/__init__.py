"""The deploy wizard as data: its questions, and what the answers make. A screen and a terminal ask them."""
