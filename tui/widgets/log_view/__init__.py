"""The log view: stores all lines compactly, and lays out and styles only the lines on the screen."""
