"""A double of the Kubernetes API that knows a few objects: what `lookup` in templates asks for."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.0"}
# The kinds of the chart, by group and version, with the names that addresses have.
RESOURCES = {
    "v1": {
        "ConfigMap": "configmaps",
        "PersistentVolumeClaim": "persistentvolumeclaims",
        "Pod": "pods",
        "Secret": "secrets",
        "Service": "services",
        "ServiceAccount": "serviceaccounts",
    },
    "apps/v1": {"Deployment": "deployments"},
    "networking.k8s.io/v1": {"Ingress": "ingresses", "NetworkPolicy": "networkpolicies"},
    "policy/v1": {"PodDisruptionBudget": "poddisruptionbudgets"},
    "rbac.authorization.k8s.io/v1": {"Role": "roles", "RoleBinding": "rolebindings"},
}


def discovery(version):
    names = [
        {"name": name, "singularName": "", "namespaced": True, "kind": kind, "verbs": ["get"]}
        for kind, name in RESOURCES[version].items()
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": names}


def root(version):
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def answers(objects):
    """Returns the answer of each path."""
    groups = []
    for version in RESOURCES:
        if "/" in version:
            served = {"groupVersion": version, "version": "v1"}
            groups.append({"name": version.split("/")[0], "versions": [served], "preferredVersion": served})
    found = {
        "/version": VERSION,
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups},
    }
    found |= {root(version): discovery(version) for version in RESOURCES}
    for one in objects:
        version, metadata = one["apiVersion"], one["metadata"]
        plural = RESOURCES[version][one["kind"]]
        found[f"{root(version)}/namespaces/{metadata['namespace']}/{plural}/{metadata['name']}"] = one
    return found


@contextmanager
def serve(objects, folder):
    """Serves while in use; yields the path of a kubeconfig in `folder`."""
    known = answers(objects)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            answer = known.get(self.path.split("?")[0])
            missing = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
            body = json.dumps(answer or missing).encode()
            self.send_response(200 if answer else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = {
        "clusters": [{"name": "double", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "contexts": [{"name": "double", "context": {"cluster": "double", "user": ""}}],
        "current-context": "double",
    }
    path = f"{folder}/kubeconfig"
    with open(path, "w") as file:
        json.dump(config, file)
    try:
        yield path
    finally:
        server.shutdown()
        server.server_close()
