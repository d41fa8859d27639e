"""Conversations as an agent may plant them. Each function fills the folder of one."""

import json
import os

MIB = 1 << 20
AT = "2026-11-01T10:00:00Z"


def entry(number, kind, **fields):
    return json.dumps({"id": number, "at": AT, "kind": kind, **fields}, separators=(",", ":"))


def write_lines(folder, lines):
    with open(folder / "entries.jsonl", "w") as file:
        file.writelines(line + "\n" for line in lines)


def write_copies(folder, block, size, end=b""):
    with open(folder / "entries.jsonl", "wb") as file:
        for _ in range((size - len(end)) // len(block)):
            file.write(block)
        file.write(end)


def usual(folder):
    """What people have: questions and answers."""
    texts = [("user", {"status": "joined", "attachments": []}), ("answer", {"streaming": False})]
    write_lines(folder, (entry(number, kind, text="word " * 200, **more) for number in range(1, 501) for kind, more in [texts[number % 2]]))


def attachments(folder):
    """An entry without a text and with 27,000 attachments, which is written again, since its turn seems to run."""
    one = {"path": "", "name": "", "picture": False}
    write_lines(folder, [entry(1, "user", text="", status="sent", attachments=[one] * 27_000)])


def model(folder):
    """Answers with a long name of a model, one of them unfinished."""
    write_lines(folder, [entry(number, "answer", text="", model="m" * 1_000_000, streaming=number == 8) for number in range(1, 9)])


def calls(folder):
    """31 MiB of tiny calls of tools."""
    one = {"name": "", "arguments": "", "cut": False}
    write_lines(folder, (entry(number, "tools", calls=[one] * 26_000) for number in range(1, 32)))


def ones(folder):
    """64 MiB of lines that are no entries."""
    write_copies(folder, b"1\n" * (MIB // 2), 64 * MIB)


def explanations(folder):
    """62 MiB of calls with long names and explanations, six bytes of JSON for each character."""
    one = {"name": "n" * 3000, "arguments": "\x01" * 900, "cut": False, "explanation": "\x01" * 1000}
    write_lines(folder, (entry(number, "tools", calls=[one] * 50) for number in range(1, 85)))


def models(folder):
    """Thousands of answers, each with as long a name of a model as is kept."""
    write_lines(folder, (entry(number, "answer", text="x", model="\x01" * 1000, streaming=False) for number in range(1, 10_001)))


def repeated(folder):
    """An entry, and 64 MiB of lines of the same number."""
    write_copies(folder, b'{"id":1 }\n' * 100_000, 64 * MIB, entry(1, "notice", code="cut", text="x").encode() + b"\n")


def removed(folder):
    """Two million removals."""
    lines = b"".join(b'{"id":%d,"removed":true}\n' % number for number in range(10_000_000, 10_040_000))
    write_copies(folder, lines, 64 * MIB)


def heads(folder):
    """Millions of entries that begin as entries do, and are none."""
    lines = b"".join(b'{"id":%d,"at":0}\n' % number for number in range(1_000_000, 1_060_000))
    write_copies(folder, lines, 64 * MIB)


def tiny(folder):
    """A million short entries in the wrong order."""
    lines = [entry(number, "notice", code="cut", text="").encode() + b"\n" for number in range(800_000, 0, -1)]
    with open(folder / "entries.jsonl", "wb") as file:
        file.writelines(lines)


def deep(folder):
    """Fields that are nested, and fields without a meaning."""
    line = entry(1, "answer", text="x", streaming=False)[:-1]
    write_lines(folder, [line + ',"y":' + "[" * 100_000 + "]" * 100_000 + "}", line + ',"z":"' + "z" * 900_000 + '"}'] * 30)


def zeros(folder):
    """64 MiB without a line break."""
    with open(folder / "entries.jsonl", "wb") as file:
        file.truncate(64 * MIB)


def too_long(folder):
    """A file of a terabyte."""
    with open(folder / "entries.jsonl", "wb") as file:
        file.truncate(1 << 40)


def fifo(folder):
    os.mkfifo(folder / "entries.jsonl")


def link(folder):
    os.symlink("/dev/zero", folder / "entries.jsonl")


def title(folder):
    """A description of a gigabyte."""
    usual(folder)
    with open(folder / "meta.json", "wb") as file:
        file.truncate(1 << 30)


def empty(folder):
    """A new one."""


ALL = [attachments, model, calls, ones, explanations, models, repeated, removed, heads, tiny, deep, zeros, too_long, fifo, link, title, usual]


def picture(path):
    """A file of 20 MiB that begins as a picture does."""
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\6\0\0\0")
        file.truncate(20 * MIB)
