"""One folder a screen: the screen, its stylesheet and the widgets only it uses."""
