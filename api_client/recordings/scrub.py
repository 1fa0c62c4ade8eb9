"""Remove secrets from all text that is written to a recording.

A secret is a known value, a value that follows a name such as ``token``, or a text in the format of a key. If
the name and the link between name and value are unambiguous, any value is removed; otherwise, only values
that look like a key are removed: see ``_is_secret``. Text is scrubbed before it is encoded as JSON, in time
linear in its length.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus

REMOVED = "[removed]"
MIN_SECRET_CHARACTERS = 8
"""Shorter known secrets are not removed, because they also occur in ordinary text."""

MAX_REPLICAS = 10_000
"""Maximum number of replicas tracked while they print a private key; then the least recent is dropped."""

_MAX_SECRET_CHARACTERS = 4_000
"""Maximum number of characters of a secret."""

_CHECKED_CHARACTERS = 200
"""Number of characters of a value that are checked to decide if it is a secret."""

# Names are matched in lower case, which is five times as fast as ignoring case.
_WORDS_BEFORE_KEY = (
    "api|access|refresh|secret|private|account|shared|signing|encryption|auth|master|storage|deploy"
)
_STRONG_NAMES = (
    r"passw(?:or)?ds?|pwd|passphrase|passcode|secrets?|token|authorization|cookies?|credentials?|jwt|bearer"
    rf"|signature|(?:{_WORDS_BEFORE_KEY})[_ -]?(?:keys?|tokens)"
)
_WEAK_NAMES = r"key|pass|auth|creds?|session|sig|login|basic|-p|-a"
_NAME_SUFFIX = r"(?:[_-]?(?:access|key|value|string|base|b64|base64|id|hash)){0,3}[0-9]{0,2}(?![a-z0-9_])"
_NAME_HINTS = (
    *("pass", "secret", "token", "auth", "cookie", "cred", "jwt", "bearer", "key", "pwd", "session", "sig"),
    *("login", "basic", "-p ", "-a "),
)
_NAME_PREFIX = re.compile(r"[\w.-]*\Z")
"""The beginning of a name, before the word that suggests a secret."""
_NAME_VALUE_LINK = re.compile(
    r"(?P<close>[\\\"'`\])]{0,6})"
    r"(?P<sep>\s{0,20}(?:=>|:=|={1,2}|:(?!//)|-?>|%3[aAdD]|\|)"
    r"|,?[ \t]{1,20}(?:(?:is|was)[ \t])?|,(?=[\\\"']))"
    r"(?P<of>[\s\[{(]{0,8}[\\\"']{0,4}[Vv]alue[\\\"']{0,4}\s?[:=])?"
    r"(?:[ \t]?[|>][+-]?(?=[\s\\]))?[ \t]{0,20}(?:(?:\r?\n|\\{1,3}n)(?:[ \t]{1,20}(?:- )?|- ))?"  # YAML
    r"(?:[\[({]{1,3}[ \t]?)?(?:(?:(?!os\.|env|process)\w{1,30}\()?[brfu]{0,2}(?=\\{0,3}[\"'`]))?"
    r"(?P<open>(?P<quote>\\{0,3}[\"'`])(?:(?P=quote){2})?)?"
)
"""The text between a name and its value in code, shells, JSON, YAML, XML, URLs and sentences."""

_TOKEN_PREFIX = re.compile(
    r"(?i)(?:bos|eos|pad|unk|sep|cls|mask|sos|eot|bot|im|image|img|audio|video|vision|special|start|end|begin|stop"
    r"|next|last|first|prev|previous|new|extra|additional|placeholder|prefix|middle|suffix|input|output|prompt|per"
    r"|decoder|forced|max|min|num|total|each|tool|think|user|assistant|system|word)[_-]?\Z"
)
"""Before ``token``: prefixes of language-model tokens (``eos_token``), which are no secrets."""
_HARMLESS_VALUE = re.compile(
    r"(?i)none|null|nil|true|false|undefined|required|missing|optional|\*+|\.{3}|x{3,}|\[?removed\]?"
)
"""Values that are no secrets, such as null or a placeholder."""
_VARIABLE_REFERENCE = re.compile(r"\$[A-Za-z_{(]|\{\{|<|os\.|env\.|process\.env")
"""The beginning of a reference to a variable, in place of a secret."""
_NUMERIC_VALUE = re.compile(r"[\d.,eE+-]*")
_PROSE_OR_CODE = re.compile(r"[A-Z]?[a-z]++[.,;:]? +[A-Za-z(]|[A-Za-z_.]++[(\[]")
_AUTH_SCHEME = re.compile(r"(?i)(?:basic|bearer|token|digest|negotiate|api-?key) ")
_UNQUOTED_VALUE = re.compile(r"[^\s\"'`,;&<>(){}\[\]|\\]{0,4000}+")
"""A value without quotes, up to a space, a quote or a bracket."""
_SHELL_WORD = re.compile(r"[^\s\"'`]{0,4000}+")
"""A value in a shell assignment, up to a space or a quote."""
_HEADER_VALUE = re.compile(r"[^\r\n\"'\\]{0,4000}+")
"""The value of an HTTP header, up to the end of the line."""
_COLON_AHEAD = re.compile(r"\s{0,4}:")
"""After a quoted text: it is the name of a JSON field, not a value."""
_CLASS_CHANGE = re.compile(r"[a-z](?=[A-Z0-9])|[A-Z](?=[0-9])|[0-9](?=[A-Za-z])")
"""A change between lower case, upper case and digits; keys have many."""

# Formats of providers' keys: prefixes, the characters that follow, and their minimum number.
_LETTERS, _DASHES = r"[A-Za-z0-9]", r"[A-Za-z0-9_-]"
_PROVIDER_KEY_FORMATS: tuple[tuple[str, str, int], ...] = (
    ("hf_ api_org_ gsk_ r8_ npm_ ntn_ lin_api_ whsec_ nvapi_ fw_ csk_", _LETTERS, 16),
    ("gh[oprsu]_ github_pat_ glsa_ glc_ dop_v1_ dckr_pat_ shp(?:at|ss|ca)_ sntry[su]_", _DASHES, 16),
    ("sk_(?:live|test)_ rk_(?:live|test)_ wandb_v1_ lsv2_(?:pt|sk)_ tgp_v1_ pul- figd_", _DASHES, 16),
    ("sk- gl(?:pat|dt|rt|ptt|cbt|soat|ft)- xox[abeprs]- xapp- nvapi- pypi- pplx- xai- tvly-", _DASHES, 16),
    (r"PMAK- NRAK- dp\.pt\. hv[sb]\. ya29\. GOCSPX- 1//0 tskey- key- dapi sq0(?:atp|csp)- EAAC", _DASHES, 16),
    ("A(?:KIA|SIA|GPA|IDA|ROA) AGE-SECRET-KEY-", "[A-Z0-9]", 16),
    ("AIza", _DASHES, 30),
    (r"SG\.", r"[A-Za-z0-9_.-]", 30),
)
# One alternative per prefix, because then the regex engine only tries positions with a prefix's first letter.
_PROVIDER_KEY = re.compile(
    "|".join(
        rf"{start}{letters}{{{min_length},300}}+"
        for starts, letters, min_length in _PROVIDER_KEY_FORMATS
        for start in starts.split()
    )
)
_OTHER_KEY_FORMATS = re.compile(
    r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,4000}+\.[A-Za-z0-9_-]{8,8000}+(?:\.[A-Za-z0-9_-]{0,2000}+){1,3}"
    r"|(?:X-(?:Amz|Goog|Emulator)-[A-Za-z-]{0,40}|AWSAccessKeyId|Key-Pair-Id)(?:=|%3D)[^\s\"'\\&<>]{1,4000}+"
    r"|(?<=hooks\.slack\.com/)(?:services|workflows|triggers)/[\w/-]{8,200}+"
    r"|(?<=/api/webhooks/)\d{5,30}/[\w-]{16,200}+"
    r"|(?<!\d)\d{8,10}:AA[\w-]{32,40}+"
    r"|LS0tLS1CRUdJTi[A-Za-z0-9+/]{16,8000}+={0,2}"
)
"""JWTs, parameters of presigned URLs, webhooks, Telegram tokens and base64 of private keys."""
_OTHER_FORMAT_HINTS = (
    "eyJ",
    "X-",
    "AWSAccess",
    "Key-Pair-Id",
    "hooks.slack",
    "webhooks/",
    ":AA",
    "LS0tLS1CRUdJTi",
)
_BASETEN_KEY = re.compile(
    r"(?<![\w.-])[A-Za-z0-9]{8}\.(?=[A-Z0-9]{0,31}[a-z])(?=[a-z0-9]{0,31}[A-Z])[A-Za-z0-9]{32}(?![\w.-])"
)
_URL_PASSWORD = re.compile(r"(?<=://)(?:(?P<user>[^\s/?#:@\"'<>]{0,200}+):)?(?P<value>[^\s/?#\"'<>]{1,500})@")
"""User and password, or only a key, before the host of a URL."""
_PASSWORD_OPTION = re.compile(
    r"(?<![\w-])(?:(?:-u|-U|--user|--proxy-user)[ =]{0,2}[\"']?(?P<user>[\w.@-]{1,100}+):|sshpass -p ?[\"']?)"
    r"(?P<value>[^\s\"']{3,500}+)"
)
"""A password in the options of curl or sshpass."""

_PRIVATE_KEY_LABEL = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_PRIVATE_KEY_END = re.compile(f"-----END {_PRIVATE_KEY_LABEL}")
_PRIVATE_KEY_BLOCK = re.compile(
    rf"-----BEGIN {_PRIVATE_KEY_LABEL}.*?(?:{_PRIVATE_KEY_END.pattern}|(?P<open>\Z))"
)
_PRIVATE_KEY_TEXT = re.compile(r"(?<![\w+/.-])[A-Za-z0-9+/]{16,4000}+={0,2}(?![\w+/=.-])")
_PRIVATE_KEY_LINE = re.compile(
    r"(?<![\w+/.-])[A-Za-z0-9+/]{64}(?:[A-Za-z0-9+/]{6}|[A-Za-z0-9+/]{12})?(?![\w+/=.-])"
)
"""A line of a private key, recognized even if its first line is in an earlier recording."""
_PRIVATE_KEY_LAST_LINE = re.compile(
    r"(?<![\w+/=.-])[A-Za-z0-9+/]{1,15}+={0,2}(?=(?:\\{1,3}[nr]){0,4}[^\w+/=.-]*\Z)"
)
_COLOR_CODE = re.compile(r"(?:\x1b|\\{1,3}(?:u001b|x1b|033))\[[0-9;]{0,40}m")


class _Name:
    """A name in a text whose value may be a secret, such as ``api_key``, and how likely that is."""

    def __init__(self, text: str, match: re.Match[str], known_names: Collection[str]) -> None:
        start, self.end = match.span()
        before = _NAME_PREFIX.search(text[max(0, start - 48) : start])
        self.begin = start - len(before[0] if before else "")
        self.word = match["word"]
        """The part of the name that suggests a secret, in lower case, such as ``key``."""
        self.prefix = text[self.begin : start].lower()
        name = text[self.begin : self.end]
        self.is_option = name.startswith("--")
        self.is_known_name = self.word in known_names
        is_in_query = text[max(0, self.begin - 1) : self.begin] in ("?", "&")
        self.is_sure = self.is_known_name or is_in_query or match["sure"] is not None
        self.is_whole_word = not text[start - 1 : start].isalpha() or text[start].isupper()
        self.is_variable = name.isupper() and "_" in name
        """True for the name of an environment variable, such as OPENAI_KEY."""


class Scrubber:
    """Replaces secrets by ``[removed]``.

    ``values`` are known secrets, removed in any encoding in which a program may print them; values assigned
    to one of the ``names`` are removed as well. Other secrets are recognized by name or format.
    """

    def __init__(self, values: Iterable[str] = (), names: Iterable[str] = ()) -> None:
        secrets = {
            secret for secret in values if len(secret) >= MIN_SECRET_CHARACTERS and not secret.isdigit()
        }
        self._values = sorted(
            {form for secret in secrets for form in _encodings(secret)}, key=len, reverse=True
        )
        known_names = sorted({_ascii_lower(name) for name in names if len(name) > 1}, key=len, reverse=True)
        self._known_names = frozenset(known_names)
        self._hints = (*_NAME_HINTS, *known_names)
        alternatives = "|".join([*map(re.escape, known_names), f"(?P<sure>{_STRONG_NAMES})", _WEAK_NAMES])
        self._names = re.compile(f"(?P<word>{alternatives}){_NAME_SUFFIX}")
        self._scrub_field_name = lru_cache(maxsize=1024)(self._without_secrets)

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        return self._scrub_text(text, [0])

    def document(self, value: Any) -> Any:
        """Return the JSON document without secrets in its strings and keys."""
        return self._scrub_value(value, [0])

    def stream(self) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
        """Return a function that scrubs log lines in order: a private key may span lines of a replica."""
        key_lines_by_replica: OrderedDict[Any, list[int]] = OrderedDict()

        def scrub(line: Mapping[str, Any]) -> dict[str, Any]:
            other_fields = dict(line)
            message = other_fields.pop("message", None)
            scrubbed: dict[str, Any] = self._scrub_value(other_fields, [0])
            if message is not None:
                replica = line.get("replica")
                key_lines = key_lines_by_replica.pop(replica, [0])
                scrubbed["message"] = self._scrub_value(message, key_lines)
                if key_lines[0]:
                    key_lines_by_replica[replica] = key_lines
                if len(key_lines_by_replica) > MAX_REPLICAS:
                    key_lines_by_replica.popitem(last=False)
            return scrubbed

        return scrub

    def _scrub_value(self, value: Any, key_lines: list[int], field_name: str = "") -> Any:
        """Return a JSON value without secrets; ``field_name`` is the field that has the value."""
        if isinstance(value, str):
            return REMOVED if self._is_secret_value(field_name, value) else self._scrub_text(value, key_lines)
        if isinstance(value, list | tuple):
            previous_items = ["", *(item if isinstance(item, str) else "" for item in value)]
            return [
                REMOVED
                if isinstance(item, str)
                and self._is_secret_value(name, item, is_strong=name.startswith("--"))
                else self._scrub_value(item, key_lines, field_name)
                for name, item in zip(previous_items, value, strict=False)
            ]
        if not isinstance(value, Mapping):
            return value
        lowered = {name.lower(): item for name, item in value.items()}
        pair_name = next((lowered[key] for key in ("name", "key", "k") if key in lowered), None)
        scrubbed = {}
        for name, item in value.items():
            is_pair = name.lower() in ("value", "v") and isinstance(pair_name, str)
            item_field_name = str(pair_name) if is_pair else self._deciding_name(name, field_name)
            scrubbed[self._scrub_field_name(name)] = self._scrub_value(item, key_lines, item_field_name)
        return scrubbed

    def _deciding_name(self, name: str, outer: str) -> str:
        """Return the name that decides if the value of ``name``, inside ``outer``, is a secret."""
        is_inner = name.lower() not in ("name", "key", "type", "id") and self._name_at_end(name) is None
        return outer if is_inner and self._name_at_end(outer) is not None else name

    def _name_at_end(self, text: str) -> _Name | None:
        return next((name for name in self._secret_names(text) if name.end == len(text)), None)

    def _is_secret_value(self, field_name: str, value: str, *, is_strong: bool = True) -> bool:
        """Return True if ``field_name`` ends with a name such as ``api_key`` and ``value`` is a secret."""
        name = self._name_at_end(field_name)
        return bool(value) and name is not None and _is_secret(name, value, is_strong)

    def _secret_names(self, text: str) -> Iterator[_Name]:
        lowered = _ascii_lower(text)
        if any(hint in lowered for hint in self._hints):
            for match in self._names.finditer(lowered):
                name = _Name(text, match, self._known_names)
                if name.is_sure or name.is_whole_word:
                    yield name

    def _scrub_text(self, text: str, key_lines: list[int]) -> str:
        """Remove secrets and, if there are any, all color codes, because color codes may split a secret."""
        plain = _COLOR_CODE.sub("", text) if "[" in text else text
        clean = self._without_private_keys(self._without_secrets(plain), key_lines)
        return text if clean == plain else clean

    def _without_secrets(self, text: str) -> str:
        if len(text) < MIN_SECRET_CHARACTERS:
            return text
        for value in self._values:
            text = text.replace(value, REMOVED)
        if any(hint in text for hint in _OTHER_FORMAT_HINTS):
            text = _OTHER_KEY_FORMATS.sub(REMOVED, text)
        text = _PROVIDER_KEY.sub(_replace_provider_key, text)
        text = _BASETEN_KEY.sub(REMOVED, text)
        text = _URL_PASSWORD.sub(_replace_url_password, text)
        text = _PASSWORD_OPTION.sub(_replace_option_password, text)
        return self._without_named(text)

    def _without_named(self, text: str) -> str:
        """Remove values that follow the name of a secret."""
        chunks, copied_until = [], 0
        for name in self._secret_names(text):
            link = _NAME_VALUE_LINK.match(text, name.end)
            if link is None or name.begin < copied_until:
                continue
            is_assigned = any(sign in link["sep"] for sign in ("=", ":", ">", "%"))
            is_strong = name.is_option or link["of"] is not None or is_assigned
            start, end = link.end(), _end_of_value(text, link, name, _CHECKED_CHARACTERS)
            is_next_name = (
                bool(link["open"]) and _COLON_AHEAD.match(text, end + len(link["open"])) is not None
            )
            if is_next_name or (not link["open"] and _is_prose_or_code(text, start, name)):
                continue
            if end > start and _is_secret(name, text[start:end], is_strong):
                chunks += [text[copied_until:start], REMOVED]
                copied_until = _end_of_value(text, link, name, _MAX_SECRET_CHARACTERS)
        return "".join([*chunks, text[copied_until:]]) if chunks else text

    def _without_private_keys(self, text: str, key_lines: list[int]) -> str:
        """Remove private keys.

        ``key_lines`` has one item, which is updated: the number of following lines that may belong to a key.
        """
        if key_lines[0] or "PRIVATE KEY" in text or (len(text) >= 64 and _PRIVATE_KEY_LINE.search(text)):
            return "\n".join([_without_key(line, key_lines) for line in text.split("\n")])
        return text


def _is_secret(name: _Name, value: str, is_strong: bool) -> bool:
    """Return True if the value of a name is a secret: the vaguer the name, the more it must look like a key.

    ``is_strong`` is True if name and value are clearly linked, such as by ``=``.
    """
    if name.is_known_name and is_strong:
        return True
    if len(value) < 4 or value[-1] == ":" or REMOVED in value:
        return False
    if _HARMLESS_VALUE.fullmatch(value) or _VARIABLE_REFERENCE.match(value):
        return False
    is_number = _NUMERIC_VALUE.fullmatch(value) is not None
    if name.word == "token" and (is_number or _TOKEN_PREFIX.search(name.prefix)):
        return False
    if name.is_sure and is_strong:
        return name.word != "pwd" or value[0] not in "/~."  # pwd may also be the working directory
    if is_number or value[0] in "/~." or "." in value:
        return name.is_variable and is_strong and not is_number and value[0] not in "/~."
    if name.is_variable and is_strong:
        return len(value) >= 6
    return _count_class_changes(value) >= (2 if name.is_sure else 4) and len(value) >= MIN_SECRET_CHARACTERS


def _count_class_changes(text: str) -> int:
    """Count changes between lower case, upper case and digits; a capitalized word has one change."""
    return sum(1 for _ in _CLASS_CHANGE.finditer(text, 0, _CHECKED_CHARACTERS))


def _encodings(value: str) -> set[str]:
    """Return the encodings of a secret that programs print, including base64 of a longer text around it."""
    data = value.encode("utf-8", "surrogatepass")
    text_forms = {
        value,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        repr(value)[1:-1],
    }
    text_forms |= {form.replace("/", "\\/") for form in text_forms} | {repr(data)[2:-1]}
    urls = {quote(data, safe=""), quote(data), quote_plus(data)}
    urls |= {re.sub("%..", lambda match: match[0].lower(), url) for url in urls}
    encoded = {*urls, data.hex(), data.hex().upper()}
    for shift in range(3):
        text = b64encode(b"\0" * shift + data).decode()
        middle = text[(shift * 8 + 5) // 6 : (shift + len(data)) * 8 // 6]
        encoded |= {middle, middle.replace("+", "-").replace("/", "_")}
    quoted_forms = {write(form)[1:-1] for form in text_forms for write in (json.dumps, repr)}
    return text_forms | encoded | quoted_forms


def _ascii_lower(text: str) -> str:
    """Convert only ASCII letters to lower case, so that positions in the text stay valid."""
    return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def _end_of_value(text: str, link: re.Match[str], name: _Name, limit: int) -> int:
    """Return the end of the value after a match of ``_NAME_VALUE_LINK``, within ``limit`` characters."""
    start = link.end()
    if link["open"]:
        end = text.find(link["open"], start, start + limit)
        if end >= 0:
            return end
    is_assignment = link["sep"] == "=" and text[max(0, name.begin - 7) : name.begin] in ("", "export ")
    pattern = _UNQUOTED_VALUE
    if name.word in ("authorization", "cookie", "cookies") and not link["open"]:
        pattern = _HEADER_VALUE
    elif is_assignment or text[name.begin - 1 : name.begin] == "\n":
        pattern = _SHELL_WORD
    return pattern.match(text, start, start + limit).end()  # type: ignore[union-attr]


def _is_prose_or_code(text: str, start: int, name: _Name) -> bool:
    """Return True for text such as ``invalid token: expected a comma`` and ``token = read_token()``."""
    if name.word == "authorization" and _AUTH_SCHEME.match(text, start):
        return False
    return _PROSE_OR_CODE.match(text, start) is not None


def _replace_provider_key(match: re.Match[str]) -> str:
    continues = match.string[match.start() - 1 : match.start()].isalnum()
    is_word = match[0][4:].islower() and not any(map(str.isdigit, match[0][4:]))
    return match[0] if continues or is_word else REMOVED


def _replace_url_password(match: re.Match[str]) -> str:
    if match["user"] is not None:
        return f"{match['user']}:{REMOVED}@"
    is_key = _count_class_changes(match["value"]) >= 4 and "." not in match["value"]
    return f"{REMOVED}@" if is_key else match[0]


def _replace_option_password(match: re.Match[str]) -> str:
    value = match["value"]
    if _NUMERIC_VALUE.fullmatch(value.rstrip(";")) or REMOVED in value:
        return match[0]
    return match[0][: match.start("value") - match.start()] + REMOVED


def _without_key(line: str, key_lines: list[int]) -> str:
    """Remove private keys from a line, including the rest of a key that began on an earlier line."""
    before = ""
    if key_lines[0] and (end := _PRIVATE_KEY_END.search(line)) is not None:
        before, line, key_lines[0] = REMOVED, line[end.end() :], 0
    is_open = any(match["open"] is not None for match in _PRIVATE_KEY_BLOCK.finditer(line))
    line = _PRIVATE_KEY_BLOCK.sub(REMOVED, line)
    if is_open:
        key_lines[0] = 200
    elif key_lines[0]:
        clean = _PRIVATE_KEY_TEXT.sub(_replace_key_text, _PRIVATE_KEY_LAST_LINE.sub(_replace_key_end, line))
        key_lines[0] = max(key_lines[0] - 1, clean != line)
        line = clean
    else:
        clean = _PRIVATE_KEY_LINE.sub(_replace_key_text, line)
        key_lines[0], line = clean != line, clean  # expect one more line: a key's last line is shorter
    return before + line


def _replace_key_text(match: re.Match[str]) -> str:
    text = match[0]
    return text if text.islower() or text.isupper() or text.isalpha() or text.isdigit() else REMOVED


def _replace_key_end(match: re.Match[str]) -> str:
    return match[0] if match[0].isalpha() or match[0].isdigit() else REMOVED


def secrets_of_environment(environ: Mapping[str, str]) -> list[str]:
    """Return the values of environment variables that hold keys, tokens and passwords."""
    is_secret: Callable[[str], object] = re.compile(r"(?i)(key|token|secret|pass|pwd|cred|cookie)").search
    is_path: Callable[[str], object] = re.compile(r"(?:/[a-z0-9_. -]+)+/?").fullmatch
    return [value for name, value in environ.items() if is_secret(name) and not is_path(value)]
