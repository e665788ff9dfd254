"""What is taken out of text that is written down, and what must stay readable."""

from __future__ import annotations

import re
import sys

import pytest

from toolserver.state.redaction import is_secret_name, redacted

SECRET = "Zq8vRw3LmN5tYb7K"
SHAPES = {
    "bearer": "curl -H 'Authorization: Bearer {}' right",
    "bearer, lower case": 'curl -H "authorization: bearer {}" right',
    "basic": "curl -H 'Authorization: Basic {}' right",
    "token": "curl -H 'Authorization: token {}' right",
    "no scheme": "curl -H 'Authorization: {}' right",
    "header without quotes": "curl -H Authorization:{} right",
    "proxy": "curl -H 'Proxy-Authorization: Basic {}' right",
    "bearer alone": "echo Bearer {} right",
    "header with a key": "curl -H 'X-Api-Key: {}' right",
    "private token": 'curl -H "PRIVATE-TOKEN: {}" right',
    "cookie": "curl -H 'Cookie: session={}; a=b' right",
    "assignment": "API_KEY={} right",
    "export": "export AWS_SECRET_ACCESS_KEY={} right",
    "lower case": "db_password={} right",
    "single quotes": "PASSWORD='{} and more' right",
    "double quotes": 'MY_DB_PASSWORD="{} and \\" more" right',
    "dollar quotes": "TOKEN=$'{} more' right",
    "escaped blank": "TOKEN={}\\ more right",
    "joined quotes": "TOKEN='{}'\" more\" right",
    "inside single quotes": "sh -c 'API_KEY={} make' right",
    "at the end of single quotes": "sh -c 'API_KEY={}' right",
    "inside double quotes": 'sh -c "API_KEY={}" right',
    "quotes in quotes": "sh -c 'API_KEY=\"{} more\" make' right",
    "escaped quotes in quotes": 'sh -c "API_KEY=\\"{} more\\" make" right',
    "passphrase of openssl": "openssl rsa -passin pass:{} right",
    "flag": "tool --password {} right",
    "flag with a sign": "tool --password={} right",
    "flag of a token": "tool --token {} right",
    "flag of an api key": "tool --api-key={} right",
    "flag with quotes": "tool --client-secret '{} more' right",
    "one dash": "keytool -storepass {} right",
    "query of a URL": "curl https://example.com/a?access_token={}&right",
    "userinfo": "git clone https://bob:{}@example.com/x.git right",
    "userinfo with an at": "psql postgres://app:{}@@db:5432/main right",
    "token as user": "git clone https://{}@example.com/x.git right",
    "JSON": 'curl -d \'{{"password": "{}", "right": 1}}\' right',
    "JSON in double quotes": 'curl -d "{{\\"token\\":\\"{}\\"}}" right',
    "ini": 'echo "x" > f; password = "{}" right',
    "mysql": "mysql -uroot -p{} right",
    "mysqldump in a pipe": "true | mysqldump -u root -p{} right",
    "sshpass": "sshpass -p {} ssh right",
    "curl -u": "curl -u bob:{} right",
    "curl --user": "curl --user bob:{} right",
    "docker login": "docker login -u bob -p {} right",
    "redis": "redis-cli -h x -a {} right",
    "docker -e": "docker run -e DB_PASS={} right",
    "env in a heredoc": "cat > .env <<E\nSECRET={}\nright\nE",
    "PEM": "echo '-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----' right",
    "PEM that is cut": "right; echo '-----BEGIN PRIVATE KEY-----\n{}\n",
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_secrets_become_stars(shape):
    got = redacted(shape.format(SECRET))
    assert SECRET not in got
    assert "***" in got
    assert "right" in got
    assert "more" not in got


KEYS = [
    "AKIA" + "Q3EXAMPLE7ZK2MNB",
    "ASIA" + "Q3EXAMPLE7ZK2MNB",
    *(f"gh{kind}_" + "a1B2c3D4e5" * 4 for kind in "pousr"),
    "github_pat_" + "11ABCDEFG0" * 5,
    "glpat-" + "x1Y2z3W4v5" * 2,
    "xoxb-" + "123456789012-abcDEF",
    "sk-" + "a1B2c3D4e5F6" * 4,
    "sk-proj-" + "a1B2c3D4e5F6" * 4,
    "sk_live_" + "a1B2c3D4e5F6",
    "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
    "npm_" + "a1B2c3D4e5" * 4,
    "pypi-" + "AgEIcHlwaS5vcmc" * 3,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + "c2lnbmF0dXJlLXZhbHVl",
]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "around", ["left {} right", "left '{}' right", "left\n{}\nright", "left/{}/right", "left={};right"]
)
def test_key_shapes_become_stars(key, around):
    assert redacted(around.format(key)) == around.format("***")


LOOK_ALIKES = [
    "git commit -m 'parse tokens'",
    "make test -j4 CC=gcc",
    "curl https://example.com/a?b=c",
    "scp user@host:path .",
    "sort -k2 keys.txt password-list.txt",
    "git log --author=bob@example.com",
    "grep -rn 'password' src",
    "grep -n token: src/lexer.py",
    "python -c 'for key in d: print(key)'",
    "if [ $key == x ]; then true; fi",
    "tool --no-password next",
    "tool --password-file /etc/x next",
    "tool --key server.pem next",
    "tool --keys 5",
    "tool --tokenizer fast",
    "npm run tokenize",
    "npm_config_cache=/tmp/x npm ci",
    "ssh -p 2222 host",
    "docker run -p 8080:80 image",
    "docker run -u 1000:1000 image",
    "mysql -u root -p database",
    "tar -pxf a.tar",
    "mkdir -p a/b",
    "ls -a src",
    "curl -u bob https://example.com",
    "a bearer of bad news",
    "echo the secretary is in",
    "monkeypatch.setattr(x, 'y', 1)",
    "passenger start",
    "cat authorization.md",
    "open cookie jar",
    "echo sk-learn",
    "pip install pypi-simple",
    "echo gh_actions",
    "git checkout feature/api-keys",
    "kubectl get secret my-secret -o yaml",
    "cat ~/.ssh/id_rsa.pub",
    "eyJ is how a token begins",
    "echo AKIA",
    "ls http://localhost:8000/@scope/name",
    "npm i @types/node@20",
    "echo 'passed: 3, failed: 0'",
    "pass: 3, fail: 0",
    "export PATH=/usr/bin:$PATH",
    "openssl x509 -in cert.pem",
]


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_look_alikes_stay(text):
    assert redacted(text) == text


def test_known_secrets_go_wherever_they_stand():
    assert redacted("a s3cr3t-longer b s3cr3t", ["s3cr3t", "s3cr3t-longer", ""]) == "a *** b ***"


def test_values_of_secret_variables():
    env = {"DB_PASSWORD": "hunter22", "npm_token": "abc", "HOME_PAGE": "left"}
    assert redacted("left hunter22 abc", env=env) == "left *** abc"


@pytest.mark.parametrize(
    ("name", "secret"), [("A_KEY", True), ("key", True), ("KEYS", False), ("Credentials", True), ("PASSWD_FILE", False)]
)
def test_names(name, secret):
    assert is_secret_name(name) is secret


HOSTILE = [
    "-",
    "a",
    "eyJ",
    "://",
    "://x@",
    "key",
    "key=",
    "key='",
    '"',
    "'",
    "\\",
    "mysql ",
    " -p",
    "--token ",
    "-----BEGIN PRIVATE KEY-----",
    "bearer ",
    "Authorization:",
    "token: ",
    "\n",
]


class Counting:
    """Counts the lines that the interpreter goes through, a measure of work that repeats."""

    def __init__(self) -> None:
        self.lines = 0

    def __call__(self, frame, event, arg):
        self.lines += 1
        return self


@pytest.mark.parametrize("unit", HOSTILE)
def test_steps_grow_with_the_text(unit):
    """Twice the text takes at most about twice the steps of Python; single matches are linear by their form."""
    steps = []
    for size in (4_000, 8_000, 16_000):
        text = (unit * size)[:size]
        counting = Counting()
        sys.settrace(counting)
        try:
            redacted(text)
        finally:
            sys.settrace(None)
        steps.append(counting.lines)
    assert steps[2] <= 2.5 * steps[1] + 200
    assert steps[1] <= 2.5 * steps[0] + 200


def test_what_is_longer_is_cut():
    assert redacted("a" * 100_000) == "a" * 16_384


def test_expressions_begin_where_runs_begin():
    """The expressions that repeat before they can fail are anchored, so a run is looked at once."""
    from toolserver.state import redaction

    for pattern in (redaction._NAMES, redaction._SHAPES):
        assert re.match(r"\(\?<!\[", pattern.pattern)
