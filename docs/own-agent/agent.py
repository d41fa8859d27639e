"""An agent: it answers in the chat, by the model that the administrator has chosen. Python 3.9 or newer, no packages."""
import base64, hashlib, hmac, json, os, signal, threading, time, urllib.request, uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

talks = {}  # What was said, by conversation.


def read(name):
    with open(os.path.join(os.environ["MINI_DIR"], name), encoding="utf-8") as file:
        return json.load(file)


def ask(messages):
    config, secrets = read("config.json"), read("security.json")
    name = config.get("defaults", {}).get("model")
    model = next((entry for entry in config.get("models", []) if entry["name"] == name), None)
    if model is None:
        return "No model is configured; an administrator chooses one."
    headers = {"Content-Type": "application/json"}
    if keys := secrets.get("models", {}).get(name, {}).get("api_keys"):
        headers["Authorization"] = f"Bearer {keys[0]}"
    body = json.dumps({"model": model["model"], "messages": messages}).encode()
    with urllib.request.urlopen(urllib.request.Request(model["api_base"] + "/chat/completions", body, headers), timeout=120) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]


class Agent(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/health":
            return self.reply(200)
        if not hmac.compare_digest(self.headers.get("Authorization", ""), "Bearer " + read("security.json")["chat"]["token"]):
            return self.reply(401)
        accept = hashlib.sha1((self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        self.reply(101, {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": base64.b64encode(accept).decode()})
        self.close_connection, self.writing, talk = True, threading.Lock(), self.path.partition("session_id=")[2]
        while head := self.rfile.read(2):
            length = head[1] & 127
            if length > 125:
                length = int.from_bytes(self.rfile.read(2 if length == 126 else 8), "big")
            mask, data = self.rfile.read(4), self.rfile.read(length)
            data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
            if head[0] & 15 == 9:  # A ping.
                self.send(data, 138)
            elif head[0] & 15 == 1 and (frame := json.loads(data))["type"] == "message.send":
                threading.Thread(target=self.answer, args=(talk, frame["payload"]["content"]), daemon=True).start()

    def answer(self, talk, text):
        messages = talks.setdefault(talk, [])
        messages.append({"role": "user", "content": text})
        try:
            content = ask(messages)
        except Exception as error:  # Whatever it is, the user reads it.
            content = f"Error processing message: {type(error).__name__}: {error}"
        messages.append({"role": "assistant", "content": content})
        payload = {"content": content, "message_id": str(uuid.uuid4()), "context_usage": {"used_percent": 0}}
        frame = {"type": "message.create", "session_id": talk, "timestamp": int(time.time() * 1000), "payload": payload}
        self.send(json.dumps(frame).encode())

    def send(self, data, kind=129):
        size = bytes([len(data)]) if len(data) < 126 else b"\x7f" + len(data).to_bytes(8, "big")
        with self.writing:
            self.wfile.write(bytes([kind]) + size + data)

    def reply(self, status, headers={"Content-Length": "0"}):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
Agent.protocol_version = "HTTP/1.1"
ThreadingHTTPServer(("0.0.0.0", 8000), Agent).serve_forever()
