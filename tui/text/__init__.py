"""Pure text functions: sanitizing, widths, names, units and times."""
