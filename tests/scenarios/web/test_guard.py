import pytest

from tests.helpers.web_pages import ask


@pytest.mark.parametrize(
    "path",
    [
        "/static/../site.py",
        "/static/%2e%2e/site.py",
        "/static//etc/passwd",
        "/static/..%2f..%2fcli.py",
        "/..",
        "/../etc",
        "/static/",
        "/static",
    ],
)
def test_static_files_are_those_of_the_package_alone(pages, path):
    assert ask(pages, path).status in {404, 405, 307}
    assert ask(pages, "/static/style.css").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_pages_are_read_and_nothing_else(pages, method):
    answer = ask(pages, "/query", method)
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_head_is_answered_as_get_is(pages):
    assert ask(pages, "/query", "HEAD").status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.nip.io", "", None, "[::2]"]
)
def test_foreign_hosts_are_refused(pages, host):
    """A name that was made to point here (DNS rebinding) gets nothing."""
    answer = ask(pages, "/", host=host)
    assert answer.status == 400
    assert "main" not in answer.text


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:9", "[::1]:8000", "[::1]"])
def test_this_machine_is_answered(pages, host):
    assert ask(pages, "/questions", host=host).status == 200


@pytest.mark.parametrize("url", ["/", "/nowhere", "/static/app.js", "/query.json", "/query?top=x"])
def test_every_answer_says_what_a_browser_may_do(pages, url):
    headers = ask(pages, url).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self' 'wasm-unsafe-eval'"
    assert "unsafe-inline" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
