"""What log lines are made of: colours, bars, tracebacks, banners, JSON. Pure, cheap for ordinary lines."""
