"""A recording that is broken off anywhere opens, and continues to the same content; no secret is in it."""

from __future__ import annotations

import json
import zipfile
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from api_client.models import CheckpointFile
from api_client.recordings.archive import RecordingError
from api_client.recordings.reading import JOB, Recording
from api_client.recordings.scrub import REMOVED, Scrubber, secrets_of_environment
from api_client.recordings.writing import RecordingWriter
from support.recorded import DOCUMENTS, line, messages, ndjson, sample, writer

LINES = [line(number, f"step {number}") for number in range(30)]
SAMPLES = [sample(10 * number, use=number / 10) for number in range(10)]


def content(path: Path) -> tuple[list[str], list[float | None]]:
    with Recording(path) as recording:
        found = recording.metrics.select(0, 2**62, step_s=1).per_node_metrics
        samples = found[0].metrics.gpu_utilization["0"] if found else []
        return messages(recording), [one.value for one in samples]


def record(path: Path) -> None:
    target = writer(path)
    for start in range(0, len(LINES), 10):
        target.log.add(LINES[start : start + 10])
        target.flush()
    target.metrics.add(SAMPLES)
    target.close()


CUT_OFF = "[this part of the recording is damaged]"


@pytest.mark.proves("docs/recordings.md", "While it is written")
def test_it_opens_after_a_kill_at_any_byte_and_continues_to_the_same_content(tmp_path: Path) -> None:
    whole = tmp_path / "whole.btrun"
    record(whole)
    expected = content(whole)
    assert expected[0] == [each["message"] for each in LINES]
    with zipfile.ZipFile(whole) as file:
        first = min(info.header_offset for info in file.infolist() if info.filename.startswith("logs/"))
    stored, cut_off = whole.read_bytes(), 0
    for kept in range(first, len(stored), 23):
        path = tmp_path / f"{kept}.btrun"
        path.write_bytes(stored[:kept])
        *lines, last = content(path)[0] or [""]
        lines += [last] if last and last != CUT_OFF else []
        assert lines == expected[0][: len(lines)]
        cut_off += last == CUT_OFF
        record(path)
        assert content(path) == expected
        with zipfile.ZipFile(path) as file:
            assert file.testzip() is None
            assert len(file.namelist()) == len(set(file.namelist()))
    assert cut_off


def test_it_continues_after_a_kill_that_follows_a_document_written_again(tmp_path: Path) -> None:
    path = tmp_path / "killed.btrun"
    target = writer(tmp_path / "run.btrun")
    target.documents({JOB: {**DOCUMENTS[JOB], "name": "later"}})
    path.write_bytes((tmp_path / "run.btrun").read_bytes())
    target.close()
    record(path)
    assert content(path)[0] == [each["message"] for each in LINES]


def test_documents_written_often_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or a run that is recorded for weeks and then killed could not be opened."""
    monkeypatch.setattr("api_client.recordings.archive.MAX_MEMBERS", 10)
    monkeypatch.setattr("api_client.recordings.archive.MAX_TOTAL_BYTES", 10_000)
    path = tmp_path / "run.btrun"
    target = writer(path)
    for number in range(100):
        target.documents({JOB: {**DOCUMENTS[JOB], "name": f"name {number}"}})
    with Recording(path) as killed:
        assert killed.job.name == "name 99"
    target.log.add([line(1, "x" * 20_000)])
    with pytest.raises(RecordingError, match="more than 10,000 bytes"):
        target.close()
    with Recording(path) as recording:
        assert (recording.job.name, messages(recording)) == ("name 99", [])


@pytest.mark.proves("docs/recordings.md", "Recordings")
def test_what_is_recorded_again_is_not_repeated_and_late_lines_are_added(tmp_path: Path) -> None:
    path = tmp_path / "run.btrun"
    record(path)
    again = writer(path)
    again.log.add([*LINES[:5], line(4.5, "late"), *LINES[5:], line(40, "new")])
    again.metrics.add([*SAMPLES, sample(100, use=1.0)])
    again.close()
    lines, samples = content(path)
    assert lines == [*(each["message"] for each in LINES), "late", "new"]
    assert samples == [*(number / 10 for number in range(10)), 1.0]
    assert (again.log.count, again.metrics.count) == (2, 1)


def test_another_job_another_recorder_or_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.btrun"
    target = writer(path)
    with pytest.raises(RecordingError, match="another process"):
        writer(path)
    target.close()
    with pytest.raises(RecordingError, match="another job, job1"):
        RecordingWriter(path, {**DOCUMENTS, JOB: {**DOCUMENTS[JOB], "id": "job2"}}, Scrubber())
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("logs.ndjson", ndjson(*LINES))
    with pytest.raises(RecordingError, match="record to a new file"):
        writer(path)
    with pytest.raises(RecordingError, match="is a folder"):
        writer(tmp_path)


OWN = 'qu"ote\\sl\u00e4sh'
"""A known secret that JSON, an address and a Python dict write in other ways."""
SECRETS = {
    "own-key-0123456789": "the key is own-key-0123456789",
    "X-Amz-Signature=0a1b2c": "GET https://s3.example/file?X-Amz-Credential=AK1&X-Amz-Signature=0a1b2c done",
    "sv-signed-99": "https://blob.example/file?se=2026&sig=sv-signed-99",
    "hf_AbCdEfGhIjKlMnOpQr": "login with hf_AbCdEfGhIjKlMnOpQr",
    "sk-live-0123456789abcdef": "OPENAI sk-live-0123456789abcdef",
    "ghp_0123456789abcdefghij": "clone https://ghp_0123456789abcdefghij@github.com/a/b",
    "AKIAABCDEFGHIJKLMNOP": "aws AKIAABCDEFGHIJKLMNOP",
    "dmVyeSBzZWNyZXQ1": "Authorization: Bearer dmVyeSBzZWNyZXQ1",
    "correcthorse": 'env: {"DB_PASSWORD": "correcthorse"}',
    "plain-value": "my_secret=plain-value",
    "tok3n-value": "my_token = tok3n-value",
    json.dumps(OWN)[1:-1]: f"as JSON {json.dumps(OWN)}",
    json.dumps(OWN, ensure_ascii=False)[1:-1]: f"as JSON {json.dumps(OWN, ensure_ascii=False)}",
    quote(OWN): f"in an address {quote(OWN)}",
    "hunter2x": "git clone https://ada:hunter2x@git.example/a",
    "hunt@r2x": "redis://:hunt@r2x@cache.example:6379/0",
    "hunter2y": "curl -u ada:hunter2y https://example.com",
    "hunter2z": "machine git.example login ada password hunter2z",
    "YWRhOmh1bnRlcjI=": "Authorization: Basic YWRhOmh1bnRlcjI=",
    "letterstoken": "MY_TOKEN=letterstoken",
    "yamltoken": "token: yamltoken",
    "json-token": """{"token": "json-token"}""",
    "nested-token": json.dumps(json.dumps({"apiKey": "nested-token"})),
    "flag-token": "train.py --token flag-token --steps 10",
    "listed-token": """['train.py', '--api-key', 'listed-token']""",
    "python-token": """os.environ["HF_TOKEN"] = "python-token\"""",
    "query-token": "GET /v1?access_token=query-token&page=2",
    "header-token": "X-Api-Key: header-token",
    "camelToken9": "clientSecret: camelToken9,",
    "azure+key==": "AccountKey=azure+key==;EndpointSuffix=core.windows.net",
    "glpat-XyZ0123456789abcdefgh": "gitlab glpat-XyZ0123456789abcdefgh",
    "AIzaXyZ0123456789abcdefghijklmnopqrstu": "google AIzaXyZ0123456789abcdefghijklmnopqrstu",
    "services/T0/B0/XyZ0123": "https://hooks.slack.com/services/T0/B0/XyZ0123",
    "npm_XyZ0123456789abcdefghijkl": "npm npm_XyZ0123456789abcdefghijkl",
    "xoxb-12345-XyZ0123456": "slack xoxb-12345-XyZ0123456",
    "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl": "jwt eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
    "sp4ced9x": "setenv HF_TOKEN        sp4ced9x",
    "s3nt3nce": "the password is s3nt3nce",
    "cell0f9x": "| HF_TOKEN | cell0f9x |",
    "d3f4ult9x": "os.environ.setdefault('HF_TOKEN', 'd3f4ult9x')",
    "tuple9x8y": "('password', 'tuple9x8y')",
    "bytes-value": "password=b'bytes-value'",
    "wrapped-value": "password: SecretStr('wrapped-value')",
    "triple-value": """PASSWORD = \"\"\"triple-value\"\"\" """,
    "element-value": "<password>element-value</password>",
    "attribute-value": """<add key="password" value="attribute-value"/>""",
    "pair-value": json.dumps(json.dumps({"name": "DB_PASSWORD", "value": "pair-value"})),
    "object-value": json.dumps({"token": {"value": "object-value"}}),
    "block-value": "password: |\n  block-value",
    "item-value": "api_keys:\n- item-value",
    "r4nd0mK3y": "openai_key: r4nd0mK3y",
    "r4nd0mS1gn": "wandb login r4nd0mS1gn",
    "r4nd0mP4ss": "docker login -u ada -p r4nd0mP4ss",
    "query-value": "GET /v1?key=query-value&page=2",
    "escaped-value": "to=https%3A%2F%2Fa%3Fapi_key%3Descaped-value%26page%3D2",
    b64encode(b"ada:own-key-0123456789").decode()[8:-4]: (
        f"Authorization {b64encode(b'ada:own-key-0123456789').decode()}"
    ),
    b"own-key-0123456789".hex(): f"as bytes {b'own-key-0123456789'.hex()}",
    b"own-key-0123456789".hex().upper(): f"as bytes {b'own-key-0123456789'.hex().upper()}",
    repr(OWN.encode())[2:-1]: f"as bytes {OWN.encode()!r}",
    "colored-value": "\x1b[1mpassword\x1b[0m: \x1b[32mcolored-value\x1b[0m",
    "json-colors": json.dumps('\x1b[34m"token"\x1b[0m: \x1b[33m"json-colors"\x1b[0m'),
    "0123-colored": "the key is own-key-\x1b[1m0123-colored\x1b[0m",
    "AbCdEf12.0123456789abcdefABCDEF0123456789": "Api-Key AbCdEf12.0123456789abcdefABCDEF0123456789",
    "123456789:AAbcdefghijklmnopqrstuvwxyz01234567": (
        "https://api.telegram.org/bot123456789:AAbcdefghijklmnopqrstuvwxyz01234567/send"
    ),
    "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQ": "tls LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQ==",
    "working-day9": "{'pwd': 'working-day9'}",
}
HARMLESS = """loss sigma=0.25 tokens=4096 num_tokens: 1.5e9 pad_token='unk' eos_token: 128001
bearer of news; task-0123456789abcdef01; risk-adjusted; https://example.com/?page=2
secret=None password: null tokenizer: meta-llama/Llama-3.1-8B
max_tokens: 4096 total_tokens=1e9 token_count: 12 tokens/s: 3 pad_token_id=0 eos_token_id: [1, 2] token: 512
{"bos_token": "<|begin_of_text|>", "tokenizer_class": "LlamaTokenizer", "eos_token": "</s>"}
password authentication failed for user "ada"; invalid token: expected a comma; --token is required
password=${DB_PASSWORD} token=$TOKEN PWD=/root/work primary_key: id; cache_key: abc123
docker run -u 1000:1000; https://example.com:8080/@scope/pkg; git@github.com:a/b.git; https://ada@example.com/a
Basic training; hf_transfer; npm_config_registry; sk-learn-contrib-something; /mnt/ckpts/step_120
sha256 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
token = request.headers.get("x"); def read(secret: Mapping[str, str]); password = getpass()
{"secret": {"name": "hf_access_token"}}; cookie_file: a.txt; key=layers.0.mlp.w1; unexpected token layer0
training.0123456789abcdef0123456789abcdef; \x1b[32mtoken\x1b[0m 12; PWD: ./work; \\x1b[1mlr\\x1b[0m
pass 2/3; pad_token_id=151643; session 12; basic block_2; login node-0; https://example.com/?page=2&steps=1000"""
PRIVATE_KEY = [
    "-----BEGIN RSA PRIVATE KEY-----",
    "MIIEpAIBAAKCAQEAxaB3+aB3+aB3+aB3+aB3+aB3+aB3+aB3+aB3+aB3+aB3+aB3",
    "Qm9keU9mVGhlS2V5aB3+aB3+aB3+aB3+aB3+aB3+aB3+aB3+aB3+aB3+aB3+aB30",
    "c2hvcnQ9==",
    "-----END RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize(("secret", "text"), SECRETS.items())
@pytest.mark.proves("docs/recordings.md", "Recordings")
def test_no_secret_is_in_any_byte_of_a_recording(tmp_path: Path, secret: str, text: str) -> None:
    path = tmp_path / "run.btrun"
    scrub = Scrubber(["own-key-0123456789", "own-key-0123-colored", OWN], ["my_secret"])
    target = writer(path, scrub)
    target.documents({JOB: {**DOCUMENTS[JOB], "error_message": text, "more": {"url": text}}})
    target.log.add([line(1, text), line(2, json.dumps({"nested": text}))])
    target.file(CheckpointFile(relative_file_name="trainer_state.json"), text.encode())
    target.close()
    with zipfile.ZipFile(path) as file:
        everything = b"\n".join(file.read(name) for name in file.namelist())
    forms = {secret, json.dumps(secret)[1:-1]}
    assert [form for form in forms if form.encode() in everything] == []
    assert everything.count(REMOVED.encode()) >= 5
    assert secret.encode() not in path.read_bytes()


PROVIDERS = """hf_ api_org_ gsk_ r8_ npm_ ntn_ lin_api_ whsec_ nvapi_ fw_ csk_ gho_ ghp_ ghr_ ghs_ ghu_
github_pat_ glsa_ glc_ dop_v1_ dckr_pat_ shpat_ shpss_ shpca_ sntrys_ sntryu_ sk_live_
sk_test_ rk_live_ rk_test_ wandb_v1_ lsv2_pt_ lsv2_sk_ tgp_v1_ pul- figd_ sk- glpat- gldt-
glrt- glptt- glcbt- glsoat- xoxa- xoxb- xoxe- xoxp- xoxr- xoxs- xapp- nvapi- pypi- pplx-
xai- tvly- PMAK- NRAK- dp.pt. hvs. hvb. ya29. GOCSPX- 1//0 tskey- key- dapi sq0atp- sq0csp-
EAAC AKIA ASIA AGPA AIDA AROA AGE-SECRET-KEY- AIza SG."""


@pytest.mark.parametrize("beginning", PROVIDERS.split())
@pytest.mark.proves("docs/recordings.md", "Recordings")
def test_key_in_the_form_of_a_provider_is_removed(beginning: str) -> None:
    assert Scrubber()(f"uses {beginning}{'AB3XK9' * 6} now") == f"uses {REMOVED} now"


def test_other_text_stays_as_it_is() -> None:
    assert Scrubber()(HARMLESS) == HARMLESS


def test_private_keys_printed_line_by_line_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "run.btrun"
    other = [f"step {place} loss 0.25 in {'data/' * 6}part" for place in range(len(PRIVATE_KEY))]
    target = writer(path)
    for place, (own, their) in enumerate(zip(PRIVATE_KEY, other, strict=True)):
        target.log.add(
            [line(2 * place, f"[rank0]: {own}"), line(2 * place + 1, their) | {"replica": "node-7"}]
        )
        target.flush()
    target.close()
    with Recording(path) as recording:
        kept = messages(recording)
    assert [text for text in kept if "step" in text] == other
    assert [part for part in PRIVATE_KEY if any(part in text for text in kept)] == []


@pytest.mark.parametrize(
    "form",
    [
        "[rank0]:{}",
        "train.py:3:{}",
        "\x1b[32m{}\x1b[0m",
        "'{}\\n',",
        '{{"level": "info", "message": "{}"}}',
        "{}$",
    ],
)
def test_private_key_is_removed_however_its_lines_are_printed(form: str) -> None:
    scrub = Scrubber().stream()
    texts = [scrub({"message": form.format(text)})["message"] for text in PRIVATE_KEY]
    assert [part for part in PRIVATE_KEY[1:4] if any(part in text for text in texts)] == []
    assert all(REMOVED in text for text in texts)


def test_key_lines_are_remembered_of_few_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api_client.recordings.scrub.MAX_REPLICAS", 3)
    scrub = Scrubber().stream()
    for number in range(100):
        scrub({"replica": f"quiet-{number}", "message": "step 1"})
    for number in range(5):
        scrub({"replica": f"node-{number}", "message": PRIVATE_KEY[0]})
    short = PRIVATE_KEY[1][:40]
    texts = [scrub({"replica": f"node-{number}", "message": short})["message"] for number in (2, 3, 4, 0, 1)]
    assert texts == [REMOVED, REMOVED, REMOVED, short, short]


def test_thousands_of_private_keys_on_a_line_are_removed() -> None:
    assert Scrubber()(f"{''.join(PRIVATE_KEY)}, " * 5_000) == f"{REMOVED}, " * 5_000


def test_continuing_in_the_middle_of_a_private_key_adds_nothing_of_it(tmp_path: Path) -> None:
    path = tmp_path / "run.btrun"
    lines = [line(place, text) for place, text in enumerate(PRIVATE_KEY)]
    for start in (0, 1, 2):
        target = writer(path)
        target.log.add(lines[start:])
        target.close()
    with Recording(path) as recording:
        kept = messages(recording)
    assert [part for part in PRIVATE_KEY[1:4] if any(part in text for text in kept)] == []


def test_values_of_secret_names_are_removed_from_documents() -> None:
    variables = {"HF_TOKEN": "letters", "PASSWORD": "12345", "pad_token": "unk", "STEPS": "10"}
    listed = [{"name": "API_KEY", "value": "letters"}, {"name": "STEPS", "value": "10"}]
    clean = Scrubber().document({"variables": variables, "listed": listed})
    assert clean["variables"] == variables | {"HF_TOKEN": REMOVED, "PASSWORD": REMOVED}
    assert [each["value"] for each in clean["listed"]] == [REMOVED, "10"]


def test_variables_of_the_environment_that_hold_secrets_are_known_unless_they_are_paths() -> None:
    environ = {"TOKEN_FILE": "/var/run/token", "A_SECRET": "/aB3dEfGh9+kL=", "PASSWORD": "a b", "STEPS": "10"}
    assert secrets_of_environment(environ) == ["/aB3dEfGh9+kL=", "a b"]


@pytest.mark.parametrize(
    "document",
    [
        {"DB_PASSWORD": {"value": "letters"}},
        {"secrets": {"database": "letters"}},
        {"passwords": ["letters"]},
        {"Name": "PASSWORD", "Value": "letters"},
        {"command": ["train.py", "--token", "letters"]},
        {"headers": [["X-Api-Key", "l3tt3rs9"]]},
    ],
)
def test_value_of_a_secret_name_is_removed_wherever_it_is(document: dict[str, Any]) -> None:
    clean = json.dumps(Scrubber().document(document))
    assert REMOVED in clean and "letters" not in clean and "l3tt3rs9" not in clean
