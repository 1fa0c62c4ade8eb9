"""Charts drawn by our own braille raster: only what changed is drawn again."""
