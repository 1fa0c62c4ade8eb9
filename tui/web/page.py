"""The page that shows the dashboard: textual's terminal, and nothing from anywhere else."""

from __future__ import annotations

from html import escape

FONT_SIZE = 16
SMALLEST_FONT, LARGEST_FONT = 6, 48

PAGE = """<!DOCTYPE html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <title>{title}</title>
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <link rel="icon" href="data:," />
    <link rel="stylesheet" href="static/css/xterm.css" />
    <link rel="stylesheet" href="page.css" />
    <script src="page.js"></script>
    <script src="static/js/textual.js"></script>
  </head>
  <body>
    <p class="notice" id="starting">Opening {title}…</p>
    <div class="notice" id="ended">
      <p>The dashboard has ended here. Jobs go on without it.</p>
      <p><a href="./">Open it again</a></p>
    </div>
    <div id="terminal" class="textual-terminal" data-session-websocket-url="{websocket}"
      data-font-size="{font_size}"></div>
  </body>
</html>
"""

STYLE = """
@font-face {
  font-family: "Roboto Mono";
  src: url("static/fonts/RobotoMono-VariableFont_wght.ttf");
  font-weight: 100 700;
}
@font-face {
  font-family: "Roboto Mono";
  src: url("static/fonts/RobotoMono-Italic-VariableFont_wght.ttf");
  font-style: italic;
  font-weight: 100 700;
}
html, body { margin: 0; height: 100%; background: #111418; color: #d8dee6; overflow: hidden; }
.notice { position: absolute; inset: 40% 0 auto; text-align: center; font: 16px "Roboto Mono", monospace;
  z-index: 10; }
.notice a { color: #7cb7ff; }
#ended, body.-first-byte #starting, body.-closed #starting { display: none; }
body.-closed #ended { display: block; }
body.-closed .textual-terminal { opacity: 0.15; }
"""

SCRIPT = """
"use strict";
// A download is a link that is followed here: a new window would be stopped as a pop-up once the key press
// that asked for it is some seconds old.
const openWindow = window.open.bind(window);
window.open = (address, ...rest) => {
  const origin = `${window.location.origin}/`;
  if (!String(address).startsWith(`${origin}download/`)) return openWindow(address, ...rest);
  const link = document.createElement("a");
  link.href = String(address).slice(origin.length); // it is below the page, not at the root
  link.download = "";
  document.body.append(link);
  link.click();
  link.remove();
  return null;
};
// Keys work as soon as there is something to see, without a click first.
new MutationObserver((_changes, observer) => {
  const field = document.querySelector(".xterm-helper-textarea");
  if (field === null || !document.body?.classList.contains("-first-byte")) return;
  observer.disconnect();
  field.focus();
}).observe(document, { attributes: true, subtree: true, attributeFilter: ["class"] });
"""


def page(title: str, websocket: str, font_size: str | None = None) -> str:
    """The page for a dashboard of this title, whose websocket has that address."""
    size = int(font_size) if font_size is not None and font_size.isdecimal() else FONT_SIZE
    size = min(LARGEST_FONT, max(SMALLEST_FONT, size))
    return PAGE.format(title=escape(title), websocket=escape(websocket, quote=True), font_size=size)
