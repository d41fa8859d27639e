// usage: agent quiet|deaf|names|flood
//
// An agent that means ill: PicoClaw's web channel on port 18791, to everybody, and a health page on 18790.
// `quiet` reads and says nothing, `deaf` reads nothing and answers every two seconds, `names` sends the longest names and
// explanations that fit a frame, `flood` short frames, both as fast as they are taken.
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONGEST (2 << 20)

static uint32_t turn(uint32_t word, int bits) { return word << bits | word >> (32 - bits); }

// SHA-1 of a text of 60 bytes: the key of a handshake and what RFC 6455 appends.
static void digest(const char *text, unsigned char *out) {
  unsigned char block[128] = {0};
  uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}, w[80];
  memcpy(block, text, 60);
  block[60] = 0x80;
  block[126] = 60 * 8 >> 8;
  block[127] = 60 * 8 & 255;
  for (int at = 0; at < 128; at += 64) {
    for (int i = 0; i < 16; i++)
      w[i] = (uint32_t)block[at + 4 * i] << 24 | block[at + 4 * i + 1] << 16 | block[at + 4 * i + 2] << 8 | block[at + 4 * i + 3];
    for (int i = 16; i < 80; i++) w[i] = turn(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (int i = 0; i < 80; i++) {
      uint32_t f = i < 20 ? (b & c) | (~b & d) : i < 40 || i >= 60 ? b ^ c ^ d : (b & c) | (b & d) | (c & d);
      uint32_t k = i < 20 ? 0x5a827999 : i < 40 ? 0x6ed9eba1 : i < 60 ? 0x8f1bbcdc : 0xca62c1d6;
      uint32_t next = turn(a, 5) + f + e + k + w[i];
      e = d, d = c, c = turn(b, 30), b = a, a = next;
    }
    h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
  }
  for (int i = 0; i < 20; i++) out[i] = h[i / 4] >> (24 - 8 * (i % 4));
}

static void put(int to, const void *bytes, size_t length) {
  for (ssize_t done; length; bytes = (const char *)bytes + done, length -= done)
    if ((done = write(to, bytes, length)) <= 0) _exit(0);
}

// Adds a text frame to a buffer; returns its end.
static char *frame(char *at, const char *text, size_t length) {
  *at++ = (char)0x81;
  int bytes = length < 126 ? 0 : length < 65536 ? 2 : 8;
  *at++ = bytes == 0 ? length : bytes == 2 ? 126 : 127;
  while (bytes--) *at++ = length >> 8 * bytes;
  memcpy(at, text, length);
  return at + length;
}

static void shake_hands(int page) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  char head[8192], text[61], accept[29] = "", answer[200];
  size_t length = 0;
  head[0] = 0;
  while (!strstr(head, "\r\n\r\n")) {
    ssize_t got = read(page, head + length, sizeof head - 1 - length);
    if (got <= 0) _exit(0);
    head[length += got] = 0;
  }
  char *key = strcasestr(head, "sec-websocket-key: ");
  if (!key) _exit(0);
  snprintf(text, sizeof text, "%.24s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key + 19);
  unsigned char sum[21] = {0};
  digest(text, sum);
  for (int i = 0; i < 7; i++) {
    uint32_t three = sum[3 * i] << 16 | sum[3 * i + 1] << 8 | sum[3 * i + 2];
    for (int j = 0; j < 4; j++) accept[4 * i + j] = digits[three >> (18 - 6 * j) & 63];
  }
  accept[27] = '=';
  int head_length = snprintf(answer, sizeof answer,
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", accept);
  put(page, answer, head_length);
}

static const char CREATE[] = "{\"type\":\"message.create\",\"payload\":{\"message_id\":\"%08d\",";

static void answer_deaf(int page) {
  char text[400], sent[500];
  for (int id = 0;; id++) {
    int length = snprintf(text, sizeof text, CREATE, id);
    length += snprintf(text + length, sizeof text - length, "\"content\":\"ok\",\"context_usage\":{\"used_percent\":1}}}");
    put(page, sent, frame(sent, text, length) - sent);
    sleep(2);
  }
}

// Each of fifty calls has three texts of two thousand characters that take six bytes each; every other frame a model's name of 1.9 MB.
static void send_names(int page) {
  char *text = malloc(LONGEST), *sent = malloc(LONGEST + 16), *at;
  for (int id = 0;; id++) {
    at = text + sprintf(text, CREATE, id);
    if (id % 2) {
      at += sprintf(at, "\"content\":\"x\",\"model_name\":\"");
      memset(at, 'm', 1900000);
      at += 1900000;
      at += sprintf(at, "\"}}");
    } else {
      at += sprintf(at, "\"content\":\"\",\"kind\":\"tool_calls\",\"tool_calls\":[");
      for (int call = 0; call < 50; call++) {
        const char *parts[] = {"{\"function\":{\"name\":\"", "\",\"arguments\":\"", "\"},\"extra_content\":{\"tool_feedback_explanation\":\""};
        if (call) *at++ = ',';
        for (int part = 0; part < 3; part++) {
          at += sprintf(at, "%s", parts[part]);
          for (int i = 0; i < 2000; i++) at = (char *)memcpy(at, "\\u0001", 6) + 6;
        }
        at += sprintf(at, "\"}}");
      }
      at += sprintf(at, "]}}");
    }
    put(page, sent, frame(sent, text, at - text) - sent);
  }
}

static void send_flood(int page) {
  char *sent = malloc(1 << 20), *at = sent, text[400];
  for (int id = 0; id < 200; id++) {
    const char *rest[] = {"\"content\":\"x\"}}", "\"content\":\"thinking\",\"thought\":true}}", "\"content\":\"xy\",\"context_usage\":{\"used_percent\":5}}}"};
    at = frame(at, "{\"type\":\"typing.start\"}", 23);
    for (int i = 0; i < 3; i++) {
      int length = snprintf(text, sizeof text, CREATE, id);
      length += snprintf(text + length, sizeof text - length, "%s", rest[i]);
      at = frame(at, text, length);
    }
    int length = snprintf(text, sizeof text, "{\"type\":\"message.delete\",\"payload\":{\"message_id\":\"%08d\"}}", id);
    at = frame(at, text, length);
  }
  for (;;) put(page, sent, at - sent);
}

static int listen_at(int port) {
  struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(port)};
  int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (struct sockaddr *)&place, sizeof place) || listen(listener, 64)) exit(1);
  return listener;
}

static void end(int signal) { (void)signal, _exit(0); }

int main(int count, char **arguments) {
  const char *mode = count > 1 ? arguments[1] : "quiet";
  signal(SIGTERM, end);
  signal(SIGCHLD, SIG_IGN);
  int pages = listen_at(18791), health = listen_at(18790);
  if (!fork()) {
    for (char head[4096];;) {
      int client = accept(health, 0, 0);
      if (client < 0) continue;
      if (read(client, head, sizeof head) > 0) dprintf(client, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
      close(client);
    }
  }
  for (;;) {
    int page = accept(pages, 0, 0);
    if (page < 0) continue;
    if (!fork()) {
      shake_hands(page);
      if (!strcmp(mode, "deaf")) answer_deaf(page);
      if (!strcmp(mode, "names")) send_names(page);
      if (!strcmp(mode, "flood")) send_flood(page);
      for (char bytes[65536]; read(page, bytes, sizeof bytes) > 0;) continue;
      _exit(0);
    }
    close(page);
  }
}
