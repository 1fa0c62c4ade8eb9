"""Line charts drawn with braille dots; only the lines of a chart that changed are repainted."""
