// The tools that the model may call. They work in the workspace; their results go back to the model.
import { readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { basename, resolve, sep } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const READ_LIMIT = 64 * 1024;

const define = (name, description, properties) => ({
  type: "function",
  function: { name, description, parameters: { type: "object", properties, required: Object.keys(properties) } },
});
const text = { type: "string" };

export const definitions = [
  define("list_dir", "Lists a folder of the workspace", { path: text }),
  define("read_file", "Reads a file of the workspace", { path: text }),
  define("send_file", "Sends a file of the workspace to the user", { path: text }),
  define("message", "Sends a message to the user", { content: text }),
  define("sleep", "Waits", { seconds: { type: "number" } }),
];

function find(workspace, path) {
  const root = realpathSync(workspace);
  const found = realpathSync(resolve(root, path));
  if (found !== root && !found.startsWith(root + sep)) throw new Error("path is outside the workspace");
  return found;
}

const tools = {
  list_dir({ path = "." }, { workspace }) {
    const entries = readdirSync(find(workspace, path), { withFileTypes: true });
    return entries.map((entry) => `${entry.isDirectory() ? "DIR: " : "FILE:"} ${entry.name}`).join("\n");
  },
  read_file({ path }, { workspace }) {
    return readFileSync(find(workspace, path)).subarray(0, READ_LIMIT).toString();
  },
  send_file({ path, filename }, { workspace, sendFile }) {
    const found = find(workspace, path);
    if (!statSync(found).isFile()) throw new Error("path is not a file");
    sendFile(found, filename ?? basename(found));
    return "Requested output delivered via tool attachment.";
  },
  message({ content }, { sendMessage }) {
    if (typeof content !== "string" || !content) throw new Error("content is required");
    sendMessage(content);
    return "Message sent to the user.";
  },
  async sleep({ seconds = 0 }, { signal }) {
    await sleep(seconds * 1000, undefined, { signal });
    return `Slept ${seconds} s.`;
  },
};

/** Runs a call of the model and returns its result; a failure is a text too. `context.signal` cancels. */
export async function runTool({ name, arguments: given }, context) {
  try {
    if (!Object.hasOwn(tools, name)) return `tool "${name}" not found`;
    return await tools[name](JSON.parse(given || "{}") ?? {}, context);
  } catch (error) {
    if (context.signal.aborted) throw error;
    return `Error: ${error.message}`;
  }
}
