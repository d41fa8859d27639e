// A conversation's side of the wire: the connections that see it, its typing mark, its messages.
import { randomUUID } from "node:crypto";

const TYPING_LIMIT = 5 * 60 * 1000;
// After a streamed answer, thoughts and tool calls are left out for this long, or until another message.
const QUIET_AFTER_STREAM = 30 * 1000;

/** A frame as the agent writes it: one line, HTML's characters escaped. */
export function encodeFrame(type, payload, more = {}) {
  const frame = { type, ...more, timestamp: Date.now(), payload };
  const escape = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return `${JSON.stringify(frame).replace(/[<>&\u2028\u2029]/g, escape)}\n`;
}

export class Session {
  connections = new Set();
  history = [];
  /** The turn that runs or waits. */
  turn;
  #typing;
  #streamedAt = -Infinity;

  constructor(id) {
    this.id = id;
  }

  /** Writes to every connection of the session. A frame that no connection takes is lost; returns false then. */
  send(type, payload) {
    const frame = encodeFrame(type, payload, { session_id: this.id });
    let sent = false;
    for (const socket of this.connections) {
      if (socket.readyState !== socket.OPEN) continue;
      socket.send(frame);
      sent = true;
    }
    return sent;
  }

  startTyping() {
    const earlier = this.#typing;
    if (!this.send("typing.start")) return;
    if (earlier) this.stopTyping();
    this.#typing = setTimeout(() => this.stopTyping(), TYPING_LIMIT).unref();
  }

  stopTyping() {
    if (!this.#typing) return;
    clearTimeout(this.#typing);
    this.#typing = undefined;
    this.send("typing.stop");
  }

  /** A whole message. The first one of a turn ends its typing mark. */
  create(payload) {
    this.stopTyping();
    if (!payload.kind) this.#streamedAt = -Infinity;
    else if (Date.now() - this.#streamedAt < QUIET_AFTER_STREAM) return;
    this.send("message.create", { ...payload, message_id: randomUUID() });
  }

  markStreamed() {
    this.#streamedAt = Date.now();
    this.stopTyping();
  }

  /** Tokens as the agent counts them, near enough. */
  usage() {
    const characters = this.history.reduce((sum, { content }) => sum + (content?.length ?? 0), 0);
    const used = 4700 + Math.ceil((characters * 2) / 5);
    return {
      compress_at_tokens: 98304,
      total_tokens: 131072,
      used_percent: Math.min(100, Math.floor((used * 100) / 98304)),
      used_tokens: used,
    };
  }
}

/** One streamed message, and the thought before it. */
export class Stream {
  #thought = {};
  // Messages of the answer: several when a marker splits it.
  #contents = [{}];
  #error;

  constructor(session, { model, throttle, growth, splitMarker }) {
    this.session = session;
    this.splitMarker = splitMarker;
    this.model = model;
    this.throttle = throttle;
    this.growth = growth;
  }

  get error() {
    return this.#error;
  }

  get visible() {
    return Boolean(this.#contents[0].id || this.#thought.id);
  }

  update({ content, thought }) {
    try {
      this.#write(this.#thought, thought, { kind: "thought", thought: true });
      this.#writeContent(content, {}, false);
    } catch (error) {
      this.#error = error;
    }
  }

  /** Writes the last update; throws when no connection takes it. */
  finish(content, usage) {
    this.#writeContent(content, { context_usage: usage }, true);
    this.session.markStreamed();
  }

  /** Takes back what was streamed. */
  delete() {
    for (const { id } of [...this.#contents, this.#thought]) {
      if (id) this.session.send("message.delete", { message_id: id });
    }
    this.#contents = [{}];
    this.#thought = {};
  }

  #writeContent(content, more, last) {
    const texts = this.splitMarker ? content.split(this.splitMarker).map((text) => text.trim()) : [content];
    texts.forEach((text, index) => {
      const isLast = index === texts.length - 1;
      const part = (this.#contents[index] ??= {});
      if (isLast) this.#write(part, text, more, last);
      else if (part.text !== text) this.#write(part, text, {}, true);
    });
  }

  #write(part, text, more = {}, last = false) {
    if (!text.trim() && !part.id) return;
    if (part.id && !last) {
      const tooSoon = Date.now() - part.at < this.throttle || text.length - part.text.length < this.growth;
      if (tooSoon || text === part.text) return;
    }
    const type = part.id ? "message.update" : "message.create";
    part.id ??= randomUUID();
    const payload = { content: text, ...more, message_id: part.id, model_name: this.model.name };
    if (!this.session.send(type, payload)) throw new Error(`no active connections for session ${this.session.id}: send failed`);
    Object.assign(part, { text, at: Date.now() });
  }
}
