"""Charts drawn with a built-in braille raster; only lines that changed are repainted."""
