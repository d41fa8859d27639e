"""Third-party parts of the program: crates that are linked into it, and npm packages in the console.

Shared by `notices` and `sbom`."""
import json
import os
import re
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONSOLE = ROOT / "api/console"
LICENSE_FILE = re.compile(r"^(licen[cs]e|copying|notice|copyright|unlicense)", re.IGNORECASE)


class Part:
    """A crate or an npm package."""

    def __init__(self, kind, name, version, license, folder, checksum, source):
        self.kind, self.name, self.version, self.license = kind, name, version, license
        self.folder, self.checksum, self.source = folder, checksum, source

    @property
    def purl(self):
        """Its package URL."""
        return f"pkg:{self.kind}/{self.name.replace('@', '%40')}@{self.version}"

    def texts(self):
        """The texts of its licence files, by path; a crate also has those of the C sources that it brings."""
        files = self.folder.rglob("*") if self.kind == "cargo" else self.folder.iterdir()
        files = [path for path in sorted(files) if LICENSE_FILE.match(path.name) and path.suffix in ("", ".md", ".txt") and path.is_file()]
        return {str(path.relative_to(self.folder)): path.read_text(encoding="utf-8", errors="replace").strip() for path in files}


def cargo_metadata(features):
    """The graph of crates for this machine, with the features of the release."""
    host = re.search(r"^host: (.*)$", subprocess.check_output(["rustc", "-vV"], text=True), re.MULTILINE)[1]
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--locked", "--format-version", "1", "--no-default-features",
               "--features", features, "--filter-platform", host]
    return json.loads(subprocess.check_output(command, cwd=ROOT))


def list_crates(features):
    """Yields the crates that are linked into the program, without those that only build or test it, and its edges."""
    metadata = cargo_metadata(features)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))
    checksums = {(entry["name"], entry["version"]): entry.get("checksum") for entry in lock["package"]}
    edges, waiting = {}, [metadata["resolve"]["root"]]
    while waiting:
        id = waiting.pop()
        if id in edges:
            continue
        linked = [dep["pkg"] for dep in nodes[id]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
        edges[id] = [dep for dep in linked if not is_macro(packages[dep])]
        waiting.extend(edges[id])
    parts = {}
    for id in edges:
        found = packages[id]
        key = (found["name"], found["version"])
        license = (found["license"] or "").replace("/", " OR ")
        parts[id] = Part("cargo", *key, license, Path(found["manifest_path"]).parent, checksums.get(key), found["source"])
    return metadata["resolve"]["root"], parts, edges


def is_macro(package):
    """Returns true for a crate that runs in the compiler."""
    return any("proc-macro" in target["kind"] for target in package["targets"])


class PlainText(HTMLParser):
    """The text of an HTML document; lines are those of the source."""

    def __init__(self, document):
        super().__init__()
        self.parts = []
        self.feed(document)

    def handle_data(self, data):
        self.parts.append(data)

    def __str__(self):
        lines = [line.rstrip() for line in "".join(self.parts).split("\n")]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def library_notices():
    """The notices of Rust's standard library and what is linked into it, as they come with the compiler."""
    folder = Path(subprocess.check_output(["rustc", "--print", "sysroot"], text=True).strip(), "share/doc/rust")
    try:
        return str(PlainText((folder / "COPYRIGHT-library.html").read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        sys.exit(f"notices of Rust's standard library are missing ({error.filename}); rustup's toolchains have them")


def list_npm():
    """Lists the npm packages that are in the console."""
    lock = json.loads((CONSOLE / "package-lock.json").read_text(encoding="utf-8"))
    if not (CONSOLE / "node_modules/.package-lock.json").exists():
        sys.exit("the packages of the console are not installed: run `npm ci` in api/console")
    found = []
    for path, entry in sorted(lock["packages"].items()):
        folder = CONSOLE / path
        if not path or any(entry.get(flag) for flag in ("dev", "devOptional", "link")):
            continue
        # One for another system.
        if entry.get("optional") and not folder.is_dir():
            continue
        name = path.rpartition("node_modules/")[2]
        found.append(Part("npm", name, entry["version"], entry.get("license", ""), folder, entry.get("integrity"), entry.get("resolved")))
    return found


def check_licenses(parts):
    """Ends the program if a part has no licence of `deny.toml`."""
    allowed = set(tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))["licenses"]["allow"])
    refused = [part for part in parts if not is_allowed(part.license, allowed)]
    for part in refused:
        print(f"{part.name} {part.version}: the licence {part.license or 'is missing, which'} is not in deny.toml", file=sys.stderr)
    if refused:
        sys.exit(1)


def is_allowed(expression, allowed):
    """Returns true if an SPDX expression can be met with the allowed licences; AND binds closer than OR."""
    tokens = re.findall(r"\(|\)|[^\s()]+(?: WITH [^\s()]+)?", expression)
    words = {"(": "(", ")": ")", "AND": "and", "OR": "or"}
    terms = [words.get(token) or str(token in allowed) for token in tokens]
    # Only parentheses, and, or, True and False are left.
    return bool(terms) and eval(" ".join(terms), {"__builtins__": {}})
