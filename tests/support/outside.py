"""Answers names with its own address, and HTTP with a word."""

import http.server
import socket
import threading

ADDRESS = "198.51.100.53"


def names():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("0.0.0.0", 53))
    while True:
        query, client = server.recvfrom(512)
        question = query[12 : query.index(0, 12) + 5]
        is_address = question[-4:] == b"\0\1\0\1"
        head = query[:2] + b"\x81\x80\0\1" + (b"\0\1" if is_address else b"\0\0") + b"\0\0\0\0"
        record = b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4" + socket.inet_aton(ADDRESS)
        server.sendto(head + question + (record if is_address else b""), client)


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"outside")

    def log_message(self, *_):
        pass


threading.Thread(target=names, daemon=True).start()
http.server.HTTPServer(("0.0.0.0", 80), Page).serve_forever()
