// The agent's own files: the page's settings, the model of the default, and the switches for misbehaviour.
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";

export const home = process.env.HOME ?? "/root";
const folder = join(home, ".agent");

// Reads a JSON file again when it is another one; a file that is missing or broken is an empty object.
class JsonFile {
  #path;
  #stamp;
  #value = {};

  constructor(name) {
    this.#path = join(folder, name);
  }

  read() {
    try {
      const { ino, size, mtimeNs } = statSync(this.#path, { bigint: true });
      const stamp = `${ino} ${size} ${mtimeNs}`;
      if (stamp === this.#stamp) return this.#value;
      this.#stamp = stamp;
      this.#value = JSON.parse(readFileSync(this.#path, "utf8")) ?? {};
    } catch {
      this.#stamp = undefined;
      this.#value = {};
    }
    return this.#value;
  }
}

const config = new JsonFile("config.json");
const security = new JsonFile("security.json");
const quirks = new JsonFile("chat-quirks.json");

const list = (value) => (Array.isArray(value) ? value : []);
const isOn = (value) => value === true || value?.enabled === true;

function readKey(secrets, name) {
  const found = Object.entries(secrets ?? {}).find(([key]) => key === name || key.startsWith(`${name}:`))?.[1];
  return found?.api_keys?.[0] ?? found?.api_key;
}

function readModel(read, secrets) {
  const wanted = read.defaults?.model ?? read.defaults?.model_name;
  const models = Array.isArray(read.models)
    ? read.models.map((model) => [model?.model_name ?? model?.name, model])
    : Object.entries(read.models ?? {});
  const entry = models.find(([name]) => name === wanted)?.[1];
  if (!wanted || !entry?.api_base) return undefined;
  return {
    name: wanted,
    // A protocol may stand before the model's own name.
    model: (entry.model ?? wanted).replace(/^openai\//, ""),
    address: `${entry.api_base.replace(/\/+$/, "")}/chat/completions`,
    key: readKey(secrets.models, wanted) ?? entry.api_keys?.[0] ?? entry.api_key ?? "",
    streaming: isOn(entry.streaming),
    timeout: entry.request_timeout ?? 120,
  };
}

export function readSettings() {
  const read = config.read();
  const secrets = security.read();
  const page = read.page ?? {};
  const token = secrets.page?.token;
  const defaults = read.defaults ?? {};
  const model = readModel(read, secrets);
  return {
    // Of the whole configuration, and of the page's part.
    version: JSON.stringify([read, secrets.page, model]),
    pageVersion: JSON.stringify([page, token]),
    token: page.enabled === true && typeof token === "string" && token ? token : undefined,
    allowTokenQuery: page.allow_token_query === true,
    allowOrigins: list(page.allow_origins),
    allowFrom: list(page.allow_from),
    pingInterval: page.ping_interval ?? 30,
    readTimeout: page.read_timeout ?? 60,
    maxConnections: page.max_connections ?? 100,
    throttle: (page.streaming?.throttle_seconds ?? 0) * 1000,
    growth: page.streaming?.min_growth_chars ?? 1,
    workspace: (defaults.workspace ?? join(folder, "workspace")).replace(/^~(?=\/|$)/, home),
    maxTurns: Math.max(1, defaults.max_parallel_turns ?? 1),
    retries: defaults.max_llm_retries ?? 2,
    retryWait: defaults.llm_retry_backoff_secs ?? 2,
    argumentsLength: defaults.tool_feedback?.max_args_length ?? 300,
    splitMarker: defaults.split_on_marker === true ? "<|[SPLIT]|>" : undefined,
    model,
  };
}

export const readQuirks = () => quirks.read();
