// A turn: the work from a message of the user to its answer.
import { askStreamed, askWhole } from "./model.mjs";
import { Stream } from "./session.mjs";
import { readSettings } from "./settings.mjs";
import { runTool } from "./tools.mjs";

const ROUNDS = 20;
const WAITING = 10;
// Messages that the model gets to see again.
const REMEMBERED = 100;
const EMPTY = "The model returned an empty response. This may indicate a provider error or token limit.";
const TOO_MANY = "I've reached `max_tool_iterations` without a final response. "
  + "Increase `max_tool_iterations` in config.json if this task needs more tool steps.";

const shorten = (text, length) => (text.length > length ? `${text.slice(0, length - 3)}...` : text);

function userMessage({ text, pictures }) {
  if (!pictures.length) return { role: "user", content: text };
  const images = pictures.map((url) => ({ type: "image_url", image_url: { url } }));
  return { role: "user", content: [...(text ? [{ type: "text", text }] : []), ...images] };
}

// The newest messages, from a text of the user on.
function recall(history) {
  const newest = history.slice(-REMEMBERED);
  const from = newest.findIndex(({ role }) => role === "user");
  return from < 0 ? [] : newest.slice(from);
}

function indent(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

export class Turn {
  #controller = new AbortController();
  #joined = [];
  #messaged = false;
  started = false;

  constructor(session, message, files) {
    this.session = session;
    this.first = message;
    this.files = files;
  }

  /** Adds a message of the user to this turn; too many are dropped without a word. */
  join(message) {
    if (this.#joined.length < WAITING) this.#joined.push(message);
  }

  cancel() {
    this.#controller.abort();
  }

  get signal() {
    return this.#controller.signal;
  }

  async run() {
    this.started = true;
    const { session } = this;
    session.history = recall(session.history);
    const before = [...session.history];
    this.settings = readSettings();
    session.history.push(userMessage(this.first));
    try {
      await this.#work();
    } catch (error) {
      if (this.signal.aborted) session.history = before;
      else session.create({ content: `Error processing message: LLM call failed after retries: ${error.message}` });
    }
  }

  async #work() {
    const { history } = this.session;
    for (let round = 0; round < ROUNDS; round += 1) {
      history.push(...this.#joined.splice(0).map(userMessage));
      const { answer, stream } = await this.#ask();
      this.signal.throwIfAborted();
      if (answer.calls.length) {
        stream?.delete();
        if (await this.#call(answer)) return;
      } else if (this.#joined.length) {
        // The answer to the earlier text is not sent: one answer is for all.
        stream?.delete();
        history.push({ role: "assistant", content: answer.content });
      } else {
        this.#answer(answer, stream);
        return;
      }
    }
    this.#answer({ content: TOO_MANY, thought: "" });
  }

  async #ask() {
    const { session, settings, signal } = this;
    const { model } = settings;
    if (!model) throw new Error("no default model configured; gateway started in limited mode");
    if (!model.streaming) return { answer: await askWhole(settings, session.history, signal) };
    const stream = new Stream(session, settings);
    try {
      const answer = await askStreamed(settings, session.history, signal, (pieces) => {
        if (!signal.aborted) stream.update(pieces);
      });
      if (!stream.error) return { answer, stream };
    } catch (error) {
      if (signal.aborted || stream.visible) throw error;
    }
    // A stream that failed before its first frame is asked again, unstreamed; a later failure breaks the turn.
    if (stream.visible) throw stream.error;
    return { answer: await askWhole(settings, session.history, signal) };
  }

  // Runs the tools of an answer; returns whether the turn ends with them.
  async #call({ content, thought, calls }) {
    const { session, settings, signal } = this;
    const { history } = session;
    const model_name = settings.model.name;
    const lastText = history.findLast(({ role }) => role === "user").content;
    const asked = typeof lastText === "string" ? lastText : (lastText.find(({ type }) => type === "text")?.text ?? "");
    const explanation = content.trim() || `Continuing the current task.: ${asked}`;
    if (thought) session.create({ content: thought, kind: "thought", model_name, thought: true });
    const tool_calls = calls.map(({ id, function: { name, arguments: given } }) => ({
      id,
      type: "function",
      function: { name, arguments: shorten(indent(given), settings.argumentsLength) },
      extra_content: { tool_feedback_explanation: explanation },
    }));
    session.create({ content: "", kind: "tool_calls", model_name, tool_calls });
    history.push({ role: "assistant", content, tool_calls: calls });
    let files = 0;
    const context = {
      signal,
      workspace: settings.workspace,
      sendFile: (path, name) => {
        session.create({ attachments: [this.files.add(path, name)], content: "" });
        files += 1;
      },
      sendMessage: (text) => {
        session.create({ content: text });
        this.#messaged = true;
      },
    };
    for (const { id, function: call } of calls) {
      const result = await runTool(call, context);
      signal.throwIfAborted();
      history.push({ role: "tool", tool_call_id: id, content: result });
    }
    return files === calls.length && !this.#joined.length;
  }

  #answer({ content, thought }, stream) {
    const { session, settings } = this;
    const text = content.trim() ? content : EMPTY;
    session.history.push({ role: "assistant", content: text });
    if (stream?.visible) {
      stream.finish(text, session.usage());
      return;
    }
    // The tool's message is the answer.
    if (this.#messaged) return;
    if (thought) session.create({ content: thought, kind: "thought", model_name: settings.model.name, thought: true });
    const parts = settings.splitMarker ? text.split(settings.splitMarker) : [text];
    for (const content of parts.filter((part) => part.trim())) session.create({ content, context_usage: session.usage() });
  }
}
