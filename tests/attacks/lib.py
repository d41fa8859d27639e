"""What the attacks share: a service on the test engine, its users, and what is measured meanwhile."""

import asyncio
import base64
import collections
import hashlib
import json
import multiprocessing
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.parse
import uuid

HERE = pathlib.Path(__file__).resolve().parent
SERVICES = HERE.parent / "services"
PASSWORD = "attack-attack-1"
LIMIT = 30  # seconds that a request may take
FORK = multiprocessing.get_context("fork")


def enter():
    """Runs the script again where the services are, and builds the images of the hostile agent."""
    if "AGENTYARD_TEST_NETNS" not in os.environ:
        os.execv(SERVICES / "in-netns", ["in-netns", sys.executable, *sys.argv])
    subprocess.run([HERE / "image"], check=True)


def describe(program):
    """Says which program is measured. One that checks sums for overflow is not optimized: its figures are not those of a release."""
    content = pathlib.Path(program).read_bytes()
    kind = "NOT OPTIMIZED" if b"attempt to multiply with overflow" in content else "optimized"
    return f"program: {kind}, {len(content) >> 20} MiB, SHA-256 {hashlib.sha256(content).hexdigest()[:16]}"


def clean_engine():
    """Removes what an earlier run has left on the engine."""
    ask = ["docker", "-H", os.environ["AGENTYARD_TEST_DOCKER_HOST"]]
    left = subprocess.run([*ask, "ps", "-aq", "--filter", "label=io.agentyard.owner"], capture_output=True, text=True, check=True)
    if left.stdout.split():
        subprocess.run([*ask, "rm", "-f", "-v", *left.stdout.split()], stdout=subprocess.DEVNULL, check=True)
    subprocess.run([*ask, "network", "rm", "agentyard"], capture_output=True)


class Service:
    """A running `serve` with a data directory of its own."""

    def __init__(self, program, agent="quiet", options=()):
        clean_engine()
        self.program = os.path.realpath(program)
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="ay-attack-"))
        self.data = self.root / "data"
        (self.root / "admin-password").touch(0o600)
        (self.root / "admin-password").write_text(PASSWORD)
        self.options = [
            "--listen", "127.0.0.1:0", "--docker-host", os.environ["AGENTYARD_TEST_DOCKER_HOST"], "--adapter", "echo",
            "--admin-password-file", str(self.root / "admin-password"), "--metrics-listen", "off", *options,
        ]
        for setting in ("image.name=hostile", f"image.tag={agent}", "image.pull_policy=never", "container.min_ready=0", "container.host_access=open"):
            self.options += ["--set", setting]
        self.start()

    def environment(self):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AGENTYARD_") and name != "RUST_LOG"}
        return {**kept, "XDG_CONFIG_HOME": str(self.root), "AGENTYARD_RESYNC": "1h"}

    def start(self):
        printed = self.root / "printed"
        command = [self.program, "serve", "--data-dir", str(self.data), *self.options]
        with open(printed, "w") as out, open(self.root / "log", "a") as log:
            self.process = subprocess.Popen(command, stdout=out, stderr=log, env=self.environment())
        address = None
        while not address:
            time.sleep(0.05)
            if self.process.poll() is not None:
                sys.exit(f"the service ended at its start: {(self.root / 'log').read_text()[-2000:]}")
            lines = printed.read_text().splitlines()
            address = next((line.split("//")[1] for line in lines if line.startswith("address: ")), None)
        host, port = address.rsplit(":", 1)
        self.address = (host, int(port))
        self.pid = self.process.pid

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            print("the service did not end within 60 s of SIGTERM", file=sys.stderr)

    def remove(self):
        self.stop()
        if self.process.returncode not in (0, -9):
            print(f"the service ended with {self.process.returncode}:\n{(self.root / 'log').read_text()[-3000:]}", file=sys.stderr)
        clean_engine()
        shutil.rmtree(self.root, ignore_errors=True)

    def run(self, *words, data=None):
        """Runs a subcommand to its end."""
        command = [self.program, *map(str, words), "--data-dir", str(data or self.data)]
        return subprocess.run(command, capture_output=True, text=True, env=self.environment(), stdin=subprocess.DEVNULL)

    def workspace(self, name):
        return self.data / "users" / name / ".agent/workspace"

    async def create(self, names, tag=None):
        """Creates users whose agents run, and signs them in. `tag(number)`: the mode of an agent."""
        at_once = asyncio.Semaphore(4)
        admin = Client(self, "admin", 200)
        await admin.sign_in()

        async def one(number, name):
            user = Client(self, name, number + 1)
            async with at_once:
                form = {"username": name, "password": PASSWORD, "wait": "60", "image_tag": tag(number) if tag else ""}
                status, body, _ = await admin.post("/api/admin/users/create", form, limit=90)
                if status != 200:
                    sys.exit(f"{name} is not created: {status} {body}")
                await user.sign_in()
            return user

        return await asyncio.gather(*(one(number, name) for number, name in enumerate(names)))

    def plant(self, name, write):
        """Makes a conversation of a user; `write` fills its folder. Returns its id."""
        conversation = uuid.uuid4().hex
        folder = self.workspace(name) / "conversations" / conversation
        folder.mkdir(parents=True)
        at = "2026-11-01T10:00:00Z"
        (folder / "meta.json").write_text(json.dumps({"title": "planted", "created_at": at, "last_used_at": at}))
        write(folder)
        return conversation

    def status(self, *names):
        """Values of /proc/PID/status in MiB; zeros when the process is gone."""
        try:
            lines = dict(line.split(":", 1) for line in open(f"/proc/{self.pid}/status") if ":" in line)
            return [int(lines[name].split()[0]) // 1024 for name in names]
        except (OSError, KeyError):
            return [0] * len(names)

    def processor(self):
        try:
            fields = open(f"/proc/{self.pid}/stat").read().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except OSError:
            return 0.0


def machine():
    """Seconds in which all processors of the machine were in use."""
    fields = [int(field) for field in open("/proc/stat").readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


class Client:
    """A user at an address of its own: a connection for each request, and answers that are thrown away."""

    def __init__(self, service, name, number):
        self.address, self.name, self.source = service.address, name, f"127.0.{1 + number // 250}.{1 + number % 250}"
        self.cookie = self.csrf = None

    async def connect(self, buffer=None):
        sock = socket.socket()
        sock.setblocking(False)
        sock.bind((self.source, 0))
        if buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        try:
            await asyncio.get_running_loop().sock_connect(sock, self.address)
            return await asyncio.open_connection(sock=sock, limit=buffer or 65536)
        except BaseException:
            sock.close()
            raise

    def head(self, method, path, more=""):
        host = "%s:%d" % self.address
        cookie = f"Cookie: {self.cookie}\r\n" if self.cookie else ""
        csrf = f"X-CSRF-Token: {self.csrf}\r\n" if self.csrf else ""
        return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n{cookie}{csrf}{more}"

    async def ask(self, method, path, form=None, limit=LIMIT, keep=True, leave_after=None):
        """Returns status (0: none within the limit), body if it is kept, and seconds. `leave_after`: seconds after which the client is gone."""
        begun, body = time.monotonic(), urllib.parse.urlencode(form or {})
        more = f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n" if method == "POST" else ""
        writer = None
        try:
            async with asyncio.timeout(limit):
                reader, writer = await self.connect()
                writer.write(f"{self.head(method, path, more)}Connection: close\r\n\r\n{body}".encode())
                if leave_after is not None:
                    await asyncio.sleep(leave_after)
                    return 0, "", 0.0
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                for line in head.split("\r\n"):
                    if line.lower().startswith("set-cookie:"):
                        self.cookie = line.split(":", 1)[1].split(";")[0].strip()
                kept = []
                while piece := await reader.read(65536):
                    kept += [piece] if keep else []
                return int(head.split()[1]), b"".join(kept).decode("utf-8", "replace"), time.monotonic() - begun
        except (OSError, asyncio.IncompleteReadError, TimeoutError, IndexError):
            return 0, "", time.monotonic() - begun
        finally:
            if writer:
                writer.transport.abort()

    async def get(self, path, **more):
        return await self.ask("GET", path, **more)

    async def post(self, path, form, **more):
        return await self.ask("POST", path, form, **more)

    async def sign_in(self):
        self.cookie = self.csrf = None
        status, body, seconds = await self.post("/api/login", {"username": self.name, "password": PASSWORD})
        if status == 200:
            _, csrf, more = await self.get("/api/csrf")
            self.csrf, seconds = json.loads(csrf or "{}").get("csrf_token"), seconds + more
        return status, seconds

    async def open(self, conversation, reads=True):
        """Opens a page; returns it, or the status of the refusal."""
        reader, writer = await self.connect(None if reads else 4096)
        key = base64.b64encode(os.urandom(16)).decode()
        more = f"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
        try:
            async with asyncio.timeout(LIMIT):
                writer.write(f"{self.head('GET', f'/api/agent/chat/ws?id={conversation}', more)}\r\n".encode())
                status = int((await reader.readuntil(b"\r\n\r\n")).split()[1])
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            status = 0
        if status != 101:
            writer.transport.abort()
            return status
        return Page(reader, writer, reads)


class Page:
    """The WebSocket of a page. One that does not read takes what its buffer takes."""

    def __init__(self, reader, writer, reads):
        self.reader, self.writer = reader, writer
        self.frames, self.end = collections.Counter(), None
        self.task = asyncio.create_task(self.read()) if reads else None

    async def read(self):
        try:
            while True:
                head = await self.reader.readexactly(2)
                length = head[1] & 127
                if length > 125:
                    length = int.from_bytes(await self.reader.readexactly(2 if length == 126 else 8), "big")
                payload = await self.reader.readexactly(length)
                if head[0] & 15 == 8:
                    self.end = struct.unpack(">H", payload[:2])[0] if length > 1 else 1005
                elif head[0] & 15 == 9:
                    self.write(0x8A, payload)
                else:
                    kind = payload[9:9 + payload[9:40].find(b'"')].decode()
                    # Only then are files sent as pictures.
                    self.frames[kind + ", pictures" * (kind == "hello" and b'"pictures":true' in payload)] += 1
        except (OSError, asyncio.IncompleteReadError):
            self.end = self.end or 1006

    def write(self, kind, payload):
        length = bytes([0x80 | len(payload)]) if len(payload) < 126 else b"\xfe" + struct.pack(">H", len(payload))
        # With a mask of zeros the payload stays as it is.
        self.writer.write(bytes([kind]) + length + b"\0\0\0\0" + payload)

    def send(self, frame):
        self.write(0x81, json.dumps(frame).encode())

    def close(self):
        if self.task:
            self.task.cancel()
        self.writer.transport.abort()


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))] if values else 0.0


async def watch(service, pipe):
    """Samples memory, and asks for the health each 100 ms, whether the one before was answered or not, until the pipe says so."""
    client, times, failures, rss, asked = Client(service, "nobody", 240), [], 0, [], set()

    async def health():
        nonlocal failures
        status, _, seconds = await client.get("/api/health")
        times.append(1000 * seconds)
        failures += status != 200

    while not pipe.poll():
        rss.append(service.status("VmRSS")[0])
        task = asyncio.create_task(health())
        asked.add(task)
        task.add_done_callback(asked.discard)
        await asyncio.sleep(0.1)
    await asyncio.gather(*asked)
    pipe.send({"times": times, "failures": failures, "rss": rss})


async def others(service, pipe, bystander, conversation, victims, disable_at):
    """Another user's calls, one after another, and an administrator who signs in and disables the attackers."""
    times, failures, result = [], collections.Counter(), {}
    paths = ["/api/files?path=", f"/api/agent/chat/entries?limit=200&id={conversation}", f"/api/agent/chat/export?id={conversation}"]

    async def administrate():
        await asyncio.sleep(disable_at)
        admin = Client(service, "admin", 241)
        result["signed_in"] = await admin.sign_in()
        for name in victims:
            status, _, seconds = await admin.post("/api/admin/users/disable", {"username": name, "wait": "0"})
            result.setdefault("disabled", []).append((status, seconds))

    admin = asyncio.create_task(administrate())
    while not pipe.poll():
        for path in paths:
            status, _, seconds = await bystander.get(path, keep=False)
            times.append(seconds)
            if status != 200:
                failures[status] += 1
        await asyncio.sleep(0.2)
    await admin
    pipe.send({"times": times, "failures": dict(failures), **result})


class Beside:
    """A process that measures; it goes before others on the processors."""

    def __init__(self, work, *arguments):
        self.pipe, theirs = FORK.Pipe()

        def run():
            os.nice(-10)
            asyncio.run(work(*arguments[:1], theirs, *arguments[1:]))

        self.process = FORK.Process(target=run, daemon=True)
        self.process.start()

    def end(self):
        self.pipe.send("end")
        try:
            return self.pipe.recv()
        finally:
            self.process.join()


def show_health(health):
    failed = f", {health['failures']} failed" if health["failures"] else ""
    return f"{percentile(health['times'], 0.99):.0f} / {max(health['times'], default=0):.0f} ms{failed}"


def show_others(seen):
    failed = sum(seen["failures"].values())
    which = f" ({', '.join(f'{status}: {count}' for status, count in seen['failures'].items())})" if failed else ""
    return f"max {max(seen['times'], default=0):.2f} s, {failed} of {len(seen['times'])} failed{which}"


def show_administrator(seen):
    status, seconds = seen["signed_in"]
    disabled = seen.get("disabled", [(0, 0.0)])
    wrong = [f"sign-in: {status}"] * (status != 200) + [f"disable: {code}" for code, _ in disabled if code != 200 and code != 202]
    return f"{seconds:.2f} s / {max(seconds for _, seconds in disabled):.2f} s{' '.join(['', *wrong])}"
