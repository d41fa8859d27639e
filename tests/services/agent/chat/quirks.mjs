// Misbehaviour on demand, for tests of the other side. `$HOME/.agent/chat-quirks.json` is read at each message:
//   {"silent": true}       nothing is ever answered; {"silent": "typing"}: but typing begins
//   {"malformed": true}    frames that are no frames come before the answer
//   {"oversized": bytes}   a message of that length comes before the answer
//   {"endless": true}      one message is updated for ever, or until the file changes; {"endless": milliseconds} between updates
//   {"drop": true}         the session's connections break off without a close frame
import { randomUUID } from "node:crypto";

import { encodeFrame } from "./session.mjs";
import { readQuirks } from "./settings.mjs";

const MALFORMED = [
  "no JSON",
  "",
  "[]",
  "null",
  '"text"',
  '{"type":7}',
  '{"payload":{"content":"no type"}}',
  '{"type":"message.create"}',
  '{"type":"message.create","payload":"text"}',
  '{"type":"message.create","payload":{"content":7,"message_id":{}}}',
  '{"type":"message.create","payload":{"content":"","kind":"tool_calls","tool_calls":"none","message_id":"a"}}',
  '{"type":"message.create","payload":{"content":"","attachments":[null,{"url":7}],"message_id":"b"}}',
  '{"type":"message.create","payload":{"content":"","attachments":[{"url":"http://example.org/"}],"message_id":"c"}}',
  '{"type":"message.update","payload":{"content":"of no message","message_id":"nowhere"}}',
  '{"type":"message.delete","payload":{}}',
  '{"type":"error","payload":{"code":7}}',
  '{"type":"surprise","payload":{}}',
  `{"type":"message.create","payload":${'{"a":'.repeat(5000)}1${"}".repeat(5001)}`,
];

function sendRaw(session, data) {
  for (const socket of session.connections) socket.send(data);
}

function updateForEver(session, quirks) {
  const id = randomUUID();
  session.send("typing.start");
  session.send("message.create", { content: "0", message_id: id, model_name: "endless" });
  let count = 0;
  const update = () => {
    count += 1;
    session.send("message.update", { content: `${count}`, message_id: id, model_name: "endless" });
    if (readQuirks().endless !== quirks.endless) clearInterval(timer);
  };
  const timer = setInterval(update, quirks.endless > 1 ? quirks.endless : 20);
}

/** Misbehaves as the file says; returns true when the message gets no answer besides. */
export function misbehave(session) {
  const quirks = readQuirks();
  if (quirks.malformed) {
    for (const data of MALFORMED) sendRaw(session, data);
    sendRaw(session, Buffer.from([0xff, 0xfe, 0x00]));
  }
  if (quirks.oversized) {
    const payload = { content: "x".repeat(quirks.oversized), message_id: randomUUID() };
    sendRaw(session, encodeFrame("message.create", payload, { session_id: session.id }));
  }
  if (quirks.drop) for (const socket of session.connections) socket.terminate();
  if (quirks.silent === "typing") session.startTyping();
  if (quirks.endless) updateForEver(session, quirks);
  return Boolean(quirks.silent || quirks.drop || quirks.endless);
}
