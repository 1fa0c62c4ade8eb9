"""The parts of log lines: colors, bars, tracebacks, banners, JSON. Pure and cheap for ordinary lines."""
