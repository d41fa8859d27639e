"""A double of the Kubernetes API that knows a few objects: what `lookup` in templates asks for."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.0"}
RESOURCES = {"v1": [("secrets", "Secret"), ("persistentvolumeclaims", "PersistentVolumeClaim")], "apps/v1": [("deployments", "Deployment")]}


def discovery(version):
    names = [
        {"name": name, "singularName": "", "namespaced": True, "kind": kind, "verbs": ["get"]}
        for name, kind in RESOURCES[version]
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": names}


def answers(objects):
    """Returns the answer of each path."""
    apps = {"groupVersion": "apps/v1", "version": "v1"}
    found = {
        "/version": VERSION,
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "apps", "versions": [apps], "preferredVersion": apps}]},
        "/api/v1": discovery("v1"),
        "/apis/apps/v1": discovery("apps/v1"),
    }
    names = {kind: name for resources in RESOURCES.values() for name, kind in resources}
    for one in objects:
        root = "/api/v1" if one["apiVersion"] == "v1" else f"/apis/{one['apiVersion']}"
        place = f"{root}/namespaces/{one['metadata']['namespace']}/{names[one['kind']]}/{one['metadata']['name']}"
        found[place] = one
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
