// The agent behind the page: its sessions, its turns one after another, and its commands.
import { misbehave } from "./quirks.mjs";
import { Session } from "./session.mjs";
import { readSettings } from "./settings.mjs";
import { Turn } from "./turn.mjs";

const HELP = `/start - Start the bot
/help - Show this help message
/stop - Stop the current task
/clear - Clear the chat history
/context - Show current session context and token usage`;

const COMMANDS = {
  help: () => HELP,
  start: () => "Hello! I am the echo agent",
  clear: (session) => {
    session.history = [];
    return "Chat history cleared!";
  },
  context: (session) => {
    const { compress_at_tokens: limit, total_tokens: total, used_tokens: used, used_percent: percent } = session.usage();
    return [
      "Context usage  ",
      `Messages: ${session.history.length}  `,
      `Used: ~${used} / ${total} tokens (${Math.floor((used * 100) / total)}%)  `,
      `Compress at: ${limit} tokens  `,
      `Compression progress: ${percent}%  `,
      `Remaining: ~${Math.max(0, limit - used)} tokens`,
    ].join("\n");
  },
};

const readCommand = (text) => /^[/!]([a-z]+)(?:@\S+)?(?:\s|$)/i.exec(text.trim())?.[1].toLowerCase();

function describeTask({ started, first }) {
  const words = started ? first.text.trim().split(/\s+/).join(" ") : "";
  const task = words.length > 80 ? `${words.slice(0, 77)}...` : words;
  return task ? JSON.stringify(task) : "Current task";
}

export class Agent {
  #sessions = new Map();
  #waiting = [];
  #running = 0;

  constructor(files) {
    this.files = files;
  }

  session(id) {
    let session = this.#sessions.get(id);
    if (!session) this.#sessions.set(id, (session = new Session(id)));
    return session;
  }

  /** A message of the user: `{ text, pictures }`. */
  receive(id, message) {
    const session = this.session(id);
    if (misbehave(session)) return;
    session.startTyping();
    const command = readCommand(message.text);
    if (command === "stop") this.#stop(session);
    else if (session.turn) session.turn.join(message);
    else if (Object.hasOwn(COMMANDS, command ?? "")) this.#reply(session, COMMANDS[command](session));
    else {
      session.turn = new Turn(session, message, this.files);
      this.#waiting.push(session.turn);
      this.#next();
    }
  }

  #reply(session, content) {
    session.create({ content, context_usage: session.usage() });
  }

  #stop(session) {
    const { turn } = session;
    if (!turn) {
      this.#reply(session, "No active task to stop.");
      return;
    }
    turn.cancel();
    this.#waiting = this.#waiting.filter((other) => other !== turn);
    session.turn = undefined;
    this.#reply(session, `Task stopped. ${describeTask(turn)} was canceled.`);
  }

  #next() {
    while (this.#waiting.length && this.#running < readSettings().maxTurns) {
      const turn = this.#waiting.shift();
      this.#running += 1;
      turn.run().finally(() => {
        this.#running -= 1;
        if (turn.session.turn === turn) turn.session.turn = undefined;
        this.#next();
      });
    }
  }
}
