"""Shared by the scripts in this folder."""

import base64
import re
import subprocess
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
CHART = REPOSITORY / "charts/agentyard"
HELM = REPOSITORY / "target/helm/helm"
# The parser in C is ten times as fast.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def helm(*arguments):
    """Runs helm; returns exit code, standard output and standard error."""
    done = subprocess.run([HELM, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def objects(manifest):
    """Returns the objects of a manifest."""
    return [document for document in yaml.load_all(manifest, LOADER) if document]


def expand(text, variables):
    """Replaces $(NAME) of known names and $$ as the kubelet does."""

    def replacement(match):
        if match[0] == "$$":
            return "$"
        return variables.get(match[1], match[0])

    return re.sub(r"\$\$|\$\(([-._a-zA-Z0-9]+)\)", replacement, text)


def secrets(documents):
    """Returns the values of a manifest's Secrets, by (name, key)."""
    found = {}
    for document in documents:
        if document["kind"] == "Secret":
            name = document["metadata"]["name"]
            for key, value in (document.get("data") or {}).items():
                found[name, key] = base64.b64decode(value).decode()
            for key, value in (document.get("stringData") or {}).items():
                found[name, key] = value
    return found


def container(documents, name, known):
    """Returns command and environment of a container of the Deployment as the kubelet starts it. `known`: values of Secrets. A field of
    the Pod is its name in brackets."""
    deployment = next(document for document in documents if document["kind"] == "Deployment")
    containers = deployment["spec"]["template"]["spec"]["containers"]
    found = next(one for one in containers if one["name"] == name)
    environment = {}
    for variable in found.get("env", []):
        if "fieldRef" in variable.get("valueFrom", {}):
            environment[variable["name"]] = f"({variable['valueFrom']['fieldRef']['fieldPath']})"
        elif "valueFrom" in variable:
            reference = variable["valueFrom"]["secretKeyRef"]
            key = reference["name"], reference["key"]
            if key not in known:
                raise KeyError(f"Secret {key[0]} with key {key[1]}; give it with --secret {key[0]}/{key[1]}=VALUE")
            environment[variable["name"]] = known[key]
        else:
            environment[variable["name"]] = expand(variable.get("value", ""), environment)
    words = found.get("command", []) + found.get("args", [])
    return {"command": [expand(word, environment) for word in words], "environment": environment}
