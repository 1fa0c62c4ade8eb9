"""Lines that name a step and a loss and report neither: prose, code, errors, commands."""

from __future__ import annotations

import re

_NO_REPORT = re.compile(
    # A shell's trace, an assignment, a build's log, a stack: by how the line begins …
    r"^\s*(?:[+$%>#] ?(?=[\w.])|#\d+ |export |set |usage:|File \"|frame #|raise |assert |E   |-{1,2}\w"
    r"|\w+ = \S{1,40}; ?\w+ = )"
    # … an exception by name, a call with a text in it, flags of a command, a question …
    r"|\b(?-i:[A-Z][a-z]\w{0,60}(?:Error|Exception|Warning))\b|\w\(f?[\"']|\s--[a-z][\w-]{1,40}[= ]|\?\s*$"
    # … or what is said to be done with a step, other than having made it.
    r"|\b(?:load(?:ed|ing)|resum(?:ed|ing)|restor(?:ed|ing)|retry(?:ing)?|wait(?:ed|ing)|revert(?:ed|ing)"
    r"|roll(?:ed|ing) back|rewound|expect(?:ed|ing)?|recommend(?:ed)?|goal)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(
    r"\b(?:the|was|were|are|should|ha[sd]|have|we|you|your|that|which|because|still|so|reach(?:ed)?|than|but|got"
    r"|not|if|when|could|would|must|will|see|only|this|be|until|due|normal|below|above|differs?"
    r"|(?<!loss )is|(?<!\d )of)\b",
    re.IGNORECASE,
)


def is_report(text: str, *, marked: bool) -> bool:
    """Whether a line with a step and a value reports them.

    ``marked``: an equals sign or a colon stands between a name and its value, as in no sentence. Without
    one, words of a sentence make the line prose.
    """
    if _NO_REPORT.search(text):
        return False
    return marked or _SENTENCE.search(text) is None
