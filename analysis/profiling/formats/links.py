"""Links from the files of a profile to a repository: templates of addresses that pages show; nothing is fetched."""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote, urlsplit

from analysis.profiling.query import LABEL
from models.errors import InputError

HEAD = "HEAD"
"""What stands for the revision where a profile does not say it: the tip of the default branch."""
REVISION_LABELS = (
    "service_git_ref",
    "vcs_ref_head_revision",
    "vcs_revision",
    "git_commit",
    "git_commit_sha",
    "git_sha",
    "git_ref",
    "commit",
    "commit_id",
    "commit_sha",
    "sha",
    "revision",
)
"""Labels that say a revision, the surest first, as they are called in lower case with `_` for `.` and `-`."""
_FIELDS = ("path", "line", "revision")
_REPOSITORIES: Mapping[str, str] = {
    "github": "/blob/{revision}/{path}#L{line}",
    "gitlab": "/-/blob/{revision}/{path}#L{line}",
    "bitbucket": "/src/{revision}/{path}#lines-{line}",
    "codeberg": "/src/commit/{revision}/{path}#L{line}",
    "gitea": "/src/commit/{revision}/{path}#L{line}",
}
"""What a host's name contains, and where its repositories have their files."""
_REVISION = re.compile(r"[0-9A-Za-z][\w.+-]*(?:/[\w+-][\w.+-]*)*", re.ASCII)
_PLACED = re.compile(r"[/\\]|[A-Za-z][A-Za-z0-9+.-]*:")
"""How a path begins that says where it lies on a machine or a site, and not only within a repository."""
_MODULE = re.compile(r"(?:[a-z0-9-]+\.)+[a-z]{2,}/", re.IGNORECASE)
_OWN_PARTS = 2
_EXAMPLE = "https://github.com/OWNER/NAME or https://HOST/{revision}/{path}#L{line}"


def parse_link(text: str) -> tuple[str, str]:
    """Return the prefix of the paths that a link is for, and its template; an empty template: there is to be none.

    Parameters
    ----------
    text : ``URL`` or ``PREFIX=URL``; the URL has ``{path}`` and perhaps ``{revision}`` and ``{line}``, or is a
        repository's at GitHub, GitLab, Bitbucket, Codeberg or Gitea

    Raises
    ------
    ValueError
        If it is neither, or leads elsewhere than to http or https.

    Examples
    --------
    >>> parse_link("/build/src=https://github.com/acme/search.git")
    ('/build/src', 'https://github.com/acme/search/blob/{revision}/{path}#L{line}')
    >>> parse_link("https://code.acme.example/{path}?h={revision}#n{line}")
    ('', 'https://code.acme.example/{path}?h={revision}#n{line}')
    >>> parse_link("git@github.com:acme/search.git")
    Traceback (most recent call last):
    models.errors.InputError: should be an address that begins with http:// or https://, such as ...
    """
    before, equals, after = text.partition("=")
    prefix, url = (before, after) if equals and not _is_web(before) else ("", text)
    prefix = prefix.replace("\\", "/").rstrip("/") or ("/" if prefix else "")
    if not url and equals:
        return prefix, ""
    return prefix, template_of(url)


def template_of(url: str) -> str:
    """Return the template of a URL that is one already, or of a repository.

    Raises
    ------
    ValueError
        If it is neither.
    """
    if not _is_web(url):
        raise InputError(f"should be an address that begins with http:// or https://, such as {_EXAMPLE}")
    if not url.isprintable() or re.search(r"[\s\"'<>\\^`|]", url):
        raise InputError("should have no blanks, quotes, brackets or control characters")
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        raise InputError("should have a host, and a port between 0 and 65535 if any") from None
    if not re.fullmatch(r"[\w.-]+|[0-9a-f:.]+", host, re.ASCII):
        raise InputError("should name its host: no field such as {path} can stand there")
    if "@" in parts.netloc:
        raise InputError("should have no user or password, since pages show it")
    fields = re.findall(r"\{([^{}]*)\}", url)
    rest = re.sub(r"\{[^{}]*\}", "", url)
    wrong = [f"{{{field}}}" for field in fields if field not in _FIELDS] + [sign for sign in "{}" if sign in rest]
    if wrong:
        raise InputError(f"has {', '.join(wrong)}: fields are {{revision}}, {{path}} and {{line}}")
    if fields and "path" not in fields:
        raise InputError("should have {path}, or every file has the same link")
    return url if fields else _of_repository(url.rstrip("/").removesuffix(".git"), host)


def link_to(links: Mapping[str, str], file: str, line: int = 0, revision: str = "") -> str:
    """Return the address of a line of a file; empty if no link is for the file.

    Parameters
    ----------
    links : prefix to template, as `parse_link` returns them; of several that fit the longest counts, and an empty one
        is for paths that say no place of a machine: `net/a.c`, not `/build/net/a.c`
    file : its path as the profile says it
    line : from 1; 0: the file as a whole
    revision : what the profile says; `HEAD` stands where it says nothing, or what is no name of a revision

    Examples
    --------
    >>> links = dict(map(parse_link, ["/build=https://github.com/acme/search"]))
    >>> link_to(links, "/build/net/a b.c", 7, "v1.2")
    'https://github.com/acme/search/blob/v1.2/net/a%20b.c#L7'
    >>> link_to(links, "/usr/include/stdio.h"), link_to(links, "/build/../etc/passwd")
    ('', '')
    """
    path = file.replace("\\", "/")
    for prefix in sorted(links, key=len, reverse=True):
        below = _below(path, prefix, links[prefix])
        if below:
            return _filled(links[prefix], below, line, revision)
    return ""


def revision_label(names: Iterable[str]) -> str:
    """Return which of a profile's labels says the revision; empty: none does.

    Examples
    --------
    >>> revision_label(["pod", "Git.Commit"]), revision_label(["pod"])
    ('Git.Commit', '')
    """
    called = {re.sub(r"[.-]", "_", name).lower(): name for name in sorted(names)}
    return next((called[name] for name in REVISION_LABELS if name in called), "")


def link_notes(links: Mapping[str, str], files: Iterable[str], labels: Iterable[str]) -> list[str]:
    """Return how many files have a link, which have none, and where the revision comes from.

    Parameters
    ----------
    links : as `link_to` takes them
    files : of the profile, without repetition
    labels : its labels
    """
    names = sorted(name for name in files if name)
    if not names:
        return ["no place of the profile says its source file, so that none has a link to a repository"]
    without = [name for name in names if not link_to(links, name)]
    others = f"; not: {', '.join(without[:3])}" if without else ""
    more = f" and {len(without) - 3:,} more" if len(without) > 3 else ""
    notes = [f"{len(names) - len(without):,} of {len(names):,} source files link to a repository{others}{more}"]
    if without and "" in links and any(map(_PLACED.match, without)):
        notes.append("paths that begin at a machine's root need their beginning: --source-link /PREFIX=URL")
    if any("{revision}" in template for template in links.values()):
        label = revision_label(labels)
        notes.append(
            f"{LABEL}{label} is the revision" if label else f"no label says the revision: links lead to {HEAD}"
        )
    return notes


def _is_web(text: str) -> bool:
    return re.match(r"https?://", text, re.IGNORECASE) is not None


def _of_repository(url: str, host: str) -> str:
    """Return the template of a repository of which the address is known."""
    parts = urlsplit(url)
    ending = next((ending for name, ending in _REPOSITORIES.items() if name in host), "")
    if not ending:
        known = "GitHub, GitLab, Bitbucket, Codeberg or Gitea"
        raise InputError(f"is no repository of {known}: give the address of a file, with {{revision}} and {{path}}")
    if parts.query or parts.fragment or len(parts.path.strip("/").split("/")) < _OWN_PARTS:
        raise InputError(f"should be a repository as https://{host}/OWNER/NAME, or have {{revision}} and {{path}}")
    return url + ending


def _below(path: str, prefix: str, template: str) -> str:
    """Return the part of a path below a prefix; empty if it does not lie there."""
    if prefix:
        start = prefix if prefix.endswith("/") else f"{prefix}/"
        below = path.removeprefix(start) if path.startswith(start) else ""
    else:
        below = "" if _PLACED.match(path) else _of_module(path, template)
    parts = [part for part in below.split("/") if part not in ("", ".")]
    return "" if ".." in parts else "/".join(parts)


def _of_module(path: str, template: str) -> str:
    """Return a path without the Go module that it begins with, if that is the repository; empty if it is another."""
    if not (path.endswith(".go") and _MODULE.match(path)):
        return path
    address = template.split("://", 1)[1]
    parts = path.split("/")
    for length in range(len(parts) - 1, _OWN_PARTS, -1):
        if address.startswith("/".join(parts[:length]) + "/"):
            return "/".join(parts[length:])
    return ""


def _filled(template: str, path: str, line: int, revision: str) -> str:
    """Return a template with its fields; without a line the fragment that would say it is left out."""
    if line < 1 and "{line}" in template:
        base, sign, fragment = template.partition("#")
        template = base if sign and "{line}" in fragment and "{line}" not in base else template
    known = revision if _REVISION.fullmatch(revision) and ".." not in revision else HEAD
    values = {"path": quote(path, safe="/"), "line": str(max(line, 1)), "revision": quote(known, safe="/")}
    return re.sub(r"\{(\w+)\}", lambda match: values[match[1]], template)
