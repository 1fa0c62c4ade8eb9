"""Remove secrets from what is written to a recording.

A secret is recognized by its value if it is known, by the name that it is assigned to, by its place in an
address, or by its provider's form. Text is read before it is encoded as JSON, in time linear in its length.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus

REMOVED = "[removed]"
MIN_SECRET_CHARACTERS = 8
"""Shorter values are not removed as known secrets: they also occur in ordinary text."""

_LONGEST = 4_000
"""Maximum number of characters of a secret."""

# What holds a secret: the end of a name such as HF_TOKEN, clientSecret or X-Api-Key, in lower case. Searching
# lowered text takes a fifth of the time of ignoring case.
_NAMES = (
    r"passw(?:or)?d|passphrase|passcode|secret|token|authorization|cookie"
    r"|(?:api|access|secret|private|account|shared|subscription|signing|encryption|auth|master|storage|deploy)"
    r"[_ -]?key"
)
_VARIABLES = r"(?:key|pass|pwd|auth|credentials?)"
"""The end of an environment variable's name, such as OPENAI_KEY: only in capitals."""
_SUFFIX = r"(?:[_-]?(?:access[_-]?)?(?:key|value|string|base|b64|base64|id|hash))?"
_ASSIGNED = (
    r"(?P<sep>[\\\"'`\]]{0,6}\s{0,8}(?:=>|:=|={1,2}|:(?!//))\s{0,8}|[\"']?,?\s{1,4})(?P<open>\\{0,3}[\"'`])?"
)
_NAMED = re.compile(rf"(?P<word>{_NAMES}|(?P<variable>{_VARIABLES})){_SUFFIX}{_ASSIGNED}")
_HINTS = ("pass", "secret", "token", "authorization", "cookie", "key", "_pwd", "_auth", "_cred")
_BEFORE = re.compile(r"[\w.-]*\Z")
_VOCABULARY = re.compile(
    r"(?i)(?:bos|eos|pad|unk|sep|cls|mask|sos|eot|bot|im|image|img|audio|video|vision|special|start|end|begin|stop"
    r"|next|last|first|prev|previous|new|extra|additional|placeholder|prefix|middle|suffix|input|output|prompt|per"
    r"|decoder|forced|max|min|num|total|each|tool|think|user|assistant|system|word)[_-]?\Z"
)
"""Before ``token``: one of a tokenizer's own. Others open something."""
_HARMLESS = re.compile(
    r"(?i)none|null|nil|true|false|undefined|required|missing|optional|\*+|\.{3}|x{3,}|\[?removed\]?"
)
_REFERENCE = re.compile(r"\$[A-Za-z_{(]|\{\{|<|os\.|env\.|process\.env")
_NUMBER = re.compile(r"[\d.,eE+-]*")
_PROSE = re.compile(r"[A-Z]?[a-z]+[.,;:]? +[A-Za-z(]")
_SCHEME = re.compile(r"(?i)(?:basic|bearer|token|digest|negotiate|api-?key) ")
_BARE = re.compile(r"[^\s\"'`,;&<>(){}\[\]|\\]{0,4000}+")
_WORD = re.compile(r"[^\s\"'`]{0,4000}+")
_HEADER = re.compile(r"[^\r\n\"'\\]{0,4000}+")

# Providers' own forms: what a key begins with, the characters that follow, and how many at least.
_LETTERS, _DASHES = r"[A-Za-z0-9]", r"[A-Za-z0-9_-]"
_PROVIDERS: tuple[tuple[str, str, int], ...] = (
    ("hf_ api_org_ gsk_ r8_ npm_ ntn_ lin_api_ whsec_ nvapi_ fw_ csk_", _LETTERS, 16),
    ("gh[oprsu]_ github_pat_ glsa_ glc_ dop_v1_ dckr_pat_ shp(?:at|ss|ca)_ sntry[su]_", _DASHES, 16),
    ("sk_(?:live|test)_ rk_(?:live|test)_ wandb_v1_ lsv2_(?:pt|sk)_ tgp_v1_ pul- figd_", _DASHES, 16),
    ("sk- gl(?:pat|dt|rt|ptt|cbt|soat|ft)- xox[abeprs]- xapp- nvapi- pypi- pplx- xai- tvly-", _DASHES, 16),
    (r"PMAK- NRAK- dp\.pt\. hv[sb]\. ya29\. GOCSPX- 1//0 tskey- key- dapi sq0(?:atp|csp)- EAAC", _DASHES, 16),
    ("A(?:KIA|SIA|GPA|IDA|ROA) AGE-SECRET-KEY-", "[A-Z0-9]", 16),
    ("AIza", _DASHES, 30),
    (r"SG\.", r"[A-Za-z0-9_.-]", 30),
)
# One alternative for each beginning: then the engine looks only where a first character of theirs is.
_PROVIDED = re.compile(
    "|".join(
        rf"{start}{letters}{{{least},300}}+"
        for starts, letters, least in _PROVIDERS
        for start in starts.split()
    )
)
_FORMS = re.compile(
    r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,4000}+\.[A-Za-z0-9_-]{8,8000}+(?:\.[A-Za-z0-9_-]{0,2000}+){1,3}"
    r"|(?:X-(?:Amz|Goog|Emulator)-[A-Za-z-]{0,40}|Signature|AWSAccessKeyId|Key-Pair-Id|[?&;]sig)"
    r"=[^\s\"'\\&<>]{1,4000}+"
    r"|(?<=hooks\.slack\.com/)(?:services|workflows|triggers)/[\w/-]{8,200}+"
    r"|(?<=/api/webhooks/)\d{5,30}/[\w-]{16,200}+"
    r"|(?<![A-Za-z0-9])\d{8,10}:AA[\w-]{32,40}+"
)
_FORM_HINTS = (
    "eyj",
    "x-",
    "signature",
    "awsaccess",
    "key-pair-id",
    "sig=",
    "hooks.slack",
    "webhooks/",
    ":aa",
)
_SPOKEN = re.compile(
    r"(?i)(?<![a-z])(?P<scheme>bearer|basic|api-key)\s{1,4}(?P<value>[A-Za-z0-9._~+/-]{8,4000}+=*)"
)
_WORDS = re.compile(r"[A-Za-z_./:|-]*")
_ADDRESS = re.compile(r"(?<=://)(?:(?P<user>[^\s/?#:@\"'<>]{0,200}+):)?(?P<password>[^\s/?#\"'<>]{1,500})@")
_OPTION = re.compile(
    r"(?<![\w-])(?:(?:-u|-U|--user|--proxy-user)[ =]{0,2}[\"']?(?P<user>[\w.@-]{1,100}+):|sshpass -p ?[\"']?)"
    r"(?P<value>[^\s\"']{3,500}+)"
)
_NETRC = re.compile(
    r"(?:\blogin\s{1,8}\S{1,200}\s{1,8}|^\s{0,40})password\s{1,8}(?P<value>\S{3,500}+)"
    r"(?=\s{0,8}\Z|\s{1,8}(?:macdef|machine))"
)

_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_TEXT = re.compile(r"(?<!\S)[A-Za-z0-9+/]{16,4000}+={0,2}(?!\S)")
_KEY_LINE = re.compile(r"(?<!\S)[A-Za-z0-9+/]{64}(?:[A-Za-z0-9+/]{6}|[A-Za-z0-9+/]{12})?(?!\S)")
"""A line of a private key: also without its beginning, as a continued recording meets it."""
_KEY_END = re.compile(r"[A-Za-z0-9+/]{1,15}={0,2}")
_KEY_LINES = 200


class Scrubber:
    """Replaces secrets by ``[removed]``.

    ``values`` are known secrets, in any form in which a program prints them; what is assigned to one of the
    ``names`` is removed as well. Other secrets are recognized by name or form.
    """

    def __init__(self, values: Iterable[str] = (), names: Iterable[str] = ()) -> None:
        known = {one for one in values if len(one) >= MIN_SECRET_CHARACTERS and not one.isdigit()}
        self._values = sorted({form for one in known for form in _forms(one)}, key=len, reverse=True)
        own = sorted({name for name in names if len(name) > 1}, key=len, reverse=True)
        self._own_names = own
        self._name = lru_cache(maxsize=1024)(self._text)
        self._own = re.compile(rf"(?P<word>{'|'.join(map(re.escape, own))}){_ASSIGNED}") if own else None

    def __call__(self, text: str) -> str:
        """Return a text without secrets."""
        return self._keys(self._text(text), [0])

    def document(self, value: Any) -> Any:
        """Return a JSON document without secrets in its texts and names."""
        return self._document(value, [0])

    def stream(self) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
        """Return a function that scrubs log lines in order: each replica may print a key line by line."""
        left: dict[Any, int] = {}

        def scrub(line: Mapping[str, Any]) -> dict[str, Any]:
            rest, replica = dict(line), line.get("replica")
            message = rest.pop("message", None)
            found: dict[str, Any] = self._document(rest, [0])
            if message is not None:
                key_lines = [left.pop(replica, 0)]
                found["message"] = self._document(message, key_lines)
                if key_lines[0]:
                    left[replica] = key_lines[0]
            return found

        return scrub

    def _document(self, value: Any, key_lines: list[int]) -> Any:
        if isinstance(value, str):
            return self._keys(self._text(value), key_lines)
        if isinstance(value, list | tuple):
            return [self._document(item, key_lines) for item in value]
        if not isinstance(value, Mapping):
            return value
        found = {}
        pair_name = value.get("name", value.get("key"))
        for name, item in value.items():
            holder = pair_name if name == "value" and isinstance(pair_name, str) else name
            is_secret = isinstance(item, str) and self._opens(holder, item)
            found[self._name(name)] = REMOVED if is_secret else self._document(item, key_lines)
        return found

    def _opens(self, name: str, value: str) -> bool:
        if not value or name in self._own_names:
            return bool(value)
        lowered = name.lower()
        if not any(hint in lowered for hint in _HINTS):
            return False
        return any(start >= len(name) for start, _ in _assignments(f"{name}={json.dumps(value)}"))

    def _text(self, text: str) -> str:
        if len(text) < MIN_SECRET_CHARACTERS:
            return text
        for value in self._values:
            text = text.replace(value, REMOVED)
        lowered = text.lower()
        if "://" in text:
            text = _ADDRESS.sub(_without_password, text)
        if any(hint in lowered for hint in _FORM_HINTS):
            text = _FORMS.sub(REMOVED, text)
        text = _PROVIDED.sub(_without_provided, text)
        if any(hint in lowered for hint in _HINTS):
            text = _replaced(text, _assignments(text))
        if "bearer" in lowered or "basic" in lowered or "api-key" in lowered:
            text = _SPOKEN.sub(_without_credentials, text)
        if "-u" in lowered or "--proxy-user" in lowered or "sshpass" in lowered:
            text = _OPTION.sub(_without_value, text)
        if "password" in lowered:
            text = _NETRC.sub(_without_value, text)
        if self._own is not None:
            text = _replaced(text, _own_assignments(text, self._own))
        return text

    def _keys(self, text: str, left: list[int]) -> str:
        """Remove private keys; ``left`` is how many more lines may belong to one that has begun."""
        if not left[0] and len(text) < len("-----BEGIN PRIVATE KEY-----"):
            return text
        if left[0] or "PRIVATE KEY" in text or _KEY_LINE.search(text) is not None:
            return "\n".join([_without_key(line, left) for line in text.split("\n")])
        return text


def _forms(value: str) -> set[str]:
    data = value.encode("utf-8", "surrogatepass")
    plain = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]}
    encoded = {quote(data, safe=""), quote(data), quote_plus(data), b64encode(data).decode().rstrip("=")}
    return plain | encoded | {json.dumps(one)[1:-1] for one in plain}


def _replaced(text: str, spans: Iterable[tuple[int, int]]) -> str:
    pieces, done = [], 0
    for start, end in spans:
        pieces += [text[done:start], REMOVED]
        done = end
    return "".join([*pieces, text[done:]]) if pieces else text


def _assignments(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the values of names that mean a secret begin and end."""
    done = 0
    for match in _NAMED.finditer(_lowered(text)):
        start, name = match.end(), _name_before(text, match)
        if match["variable"] and not (name.isupper() and "_" in name):
            continue
        is_assigned = match["sep"].strip("\"', ") != "" or name.startswith("--")
        if match.start() < done or not is_assigned or _is_prose(text, match):
            continue
        end = _end_of_value(text, match, name)
        if end > start and not _stays(match, name, text[start:end]):
            done = end
            yield start, end


def _own_assignments(text: str, own: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    done = 0
    for match in own.finditer(text):
        end = _end_of_value(text, match, match["word"])
        if match.start() >= done and end > match.end() and any(sign in match["sep"] for sign in "=:"):
            done = end
            yield match.end(), end


def _lowered(text: str) -> str:
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(letter.lower() if letter.isascii() else letter for letter in text)


def _name_before(text: str, match: re.Match[str]) -> str:
    before = _BEFORE.search(text[max(0, match.start() - 48) : match.start()])
    return (before[0] if before else "") + text[match.start() : match.end("word")]


def _end_of_value(text: str, match: re.Match[str], name: str) -> int:
    start = match.end()
    if match["open"]:
        end = text.find(match["open"], start, start + _LONGEST)
        return end if end >= 0 else _BARE.match(text, start).end()  # type: ignore[union-attr]
    if match["word"] in ("authorization", "cookie"):
        return _HEADER.match(text, start).end()  # type: ignore[union-attr]
    begin = match.start("word") - (len(name) - len(match["word"]))
    is_variable = match["sep"] == "=" and text[max(0, begin - 7) : begin] in ("", "export ")
    pattern = _WORD if is_variable or text[begin - 1 : begin] == "\n" else _BARE
    return pattern.match(text, start).end()  # type: ignore[union-attr]


def _is_prose(text: str, match: re.Match[str]) -> bool:
    """Return True for ``invalid token: expected a comma``."""
    start = match.end()
    if match["open"] or (match["word"] == "authorization" and _SCHEME.match(text, start)):
        return False
    return _PROSE.match(text, start) is not None


def _stays(match: re.Match[str], name: str, value: str) -> bool:
    """Return True for a value that is no secret: none, a reference, a count, a token of a vocabulary."""
    word = match["word"]
    if len(value) < 4 or _HARMLESS.fullmatch(value) or _REFERENCE.match(value) or REMOVED in value:
        return True
    before = name.lower().rpartition(word)[0]
    if word == "token" and (_NUMBER.fullmatch(value) or _VOCABULARY.search(before)):
        return True
    return match["variable"] is not None and (
        _NUMBER.fullmatch(value) is not None or value[0] in "/~." or len(value) < 6
    )


def _is_random(text: str) -> bool:
    return any(map(str.isdigit, text)) or not text.islower()


def _without_provided(match: re.Match[str]) -> str:
    continues = match.string[match.start() - 1 : match.start()].isalnum()
    return match[0] if continues or not _is_random(match[0][4:]) else REMOVED


def _without_password(match: re.Match[str]) -> str:
    if match["user"] is not None:
        return f"{match['user']}:{REMOVED}@"
    is_key = len(match["password"]) >= 16 and _is_random(match["password"]) and "." not in match["password"]
    return f"{REMOVED}@" if is_key else match[0]


def _without_value(match: re.Match[str]) -> str:
    value = match["value"]
    if (
        _NUMBER.fullmatch(value.rstrip(";"))
        or REMOVED in value
        or (match.re is _NETRC and value.islower() and value.isalpha())
    ):
        return match[0]
    return match[0][: match.start("value") - match.start()] + REMOVED


def _without_credentials(match: re.Match[str]) -> str:
    value = match["value"]
    if match["scheme"].lower() == "basic":
        stays = not _is_credentials(value)
    else:
        stays = _WORDS.fullmatch(value) is not None or _NUMBER.fullmatch(value) is not None
    return match[0] if stays else match[0][: match.start("value") - match.start()] + REMOVED


def _is_credentials(text: str) -> bool:
    """Return True for ``user:password`` in base64."""
    try:
        return b":" in b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        return False


def _without_key(line: str, left: list[int]) -> str:
    begin = _BEGIN.search(line)
    if begin is None and not left[0]:
        clean = _KEY_LINE.sub(_without_key_text, line)
        left[0] = clean != line  # Its last line is shorter.
        return clean
    if begin is not None:
        left[0] = _KEY_LINES
        end = _END.search(line, begin.end())
        if end is None:
            return line[: begin.start()] + REMOVED
        left[0] = 0
        return line[: begin.start()] + REMOVED + _without_key(line[end.end() :], left)
    end = _END.search(line)
    if end is not None:
        left[0] = 0
        return REMOVED + line[end.end() :]
    left[0] -= 1
    last = line.rpartition(" ")[2]
    if _KEY_END.fullmatch(last) and not last.isalpha() and not last.isdigit():
        line = line[: len(line) - len(last)] + REMOVED
    clean = _KEY_TEXT.sub(_without_key_text, line)
    left[0] = max(left[0], clean != line)
    return clean


def _without_key_text(match: re.Match[str]) -> str:
    text = match[0]
    return text if text.islower() or text.isupper() or text.isalpha() or text.isdigit() else REMOVED


def secrets_of_environment(environ: Mapping[str, str]) -> list[str]:
    """Return the values of variables that hold keys, tokens and passwords."""
    is_secret: Callable[[str], object] = re.compile(r"(?i)(key|token|secret|passw)").search
    return [value for name, value in environ.items() if is_secret(name)]
