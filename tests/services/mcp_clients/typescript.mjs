// What a client of a TypeScript SDK sees of the service at URL, as one line of JSON.
//
// usage: URL=… TOKEN=… node typescript.mjs v1|v2 http|sse|auto|remote
//
// Before that it says `cancel` when a call is to come under way that it then cancels, and `restart` when the service may restart, and
// goes on with each line on stdin.
// `remote` is mcp-remote as a child process, spoken to over stdin and stdout.
import { createInterface } from "node:readline";

const [sdk, kind] = process.argv.slice(2);
const address = new URL(process.env.URL);
const authorization = `Bearer ${process.env.TOKEN}`;
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const told = (what) => {
  console.log(what);
  return lines.next();
};
const here = import.meta.dirname;

async function library() {
  if (sdk === "v2") {
    const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
    return { ...(await import("@modelcontextprotocol/client")), StdioClientTransport };
  }
  const from = "@modelcontextprotocol/sdk/client";
  const { Client } = await import(`${from}/index.js`);
  const { StreamableHTTPClientTransport } = await import(`${from}/streamableHttp.js`);
  const { SSEClientTransport } = await import(`${from}/sse.js`);
  const { StdioClientTransport } = await import(`${from}/stdio.js`);
  return { Client, StreamableHTTPClientTransport, SSEClientTransport, StdioClientTransport };
}

const mcp = await library();

function transport() {
  const options = { requestInit: { headers: { Authorization: authorization } } };
  switch (kind) {
    case "sse":
      return new mcp.SSEClientTransport(address, options);
    case "remote": {
      const proxy = `${here}/node_modules/mcp-remote/dist/proxy.js`;
      const args = [proxy, address.href, "--header", `Authorization: ${authorization}`, "--allow-http"];
      return new mcp.StdioClientTransport({ command: process.execPath, args, env: process.env, stderr: "ignore" });
    }
    default:
      return new mcp.StreamableHTTPClientTransport(address, options);
  }
}

const client = new mcp.Client(
  { name: "agentyard-test", version: "1" },
  kind === "auto" ? { versionNegotiation: { mode: "auto" } } : {},
);
const call = (name, args, options = {}) => {
  const asked = { name, arguments: args };
  return sdk === "v2" ? client.callTool(asked, options) : client.callTool(asked, undefined, options);
};
const navigate = { url: "https://example.org/" };
const text = (result) => result.content[0].text;

const over = transport();
let revision;
const agreed = over.setProtocolVersion?.bind(over);
over.setProtocolVersion = (version) => {
  revision = version;
  agreed?.(version);
};
await client.connect(over);
const { tools } = await client.listTools();
const called = await call("browser_navigate", navigate);
const failed = await call("browser_execute", { script: "throw" });
const unknown = await call("no_such_tool", {}).then(
  (result) => `no error: ${JSON.stringify(result)}`,
  (error) => error.code,
);

const abort = new AbortController();
const cancelled = call("browser_click", { selector: "#a" }, { signal: abort.signal }).then(
  () => false,
  () => true,
);
await told("cancel");
abort.abort("enough");
const facts = {
  revision: client.getNegotiatedProtocolVersion?.() ?? revision,
  server: client.getServerVersion().name,
  tools: tools.map((tool) => tool.name),
  called: text(called),
  failed: [failed.isError, text(failed)],
  unknown,
  cancelled: await cancelled,
  after: text(await call("browser_navigate", navigate)),
};

await told("restart");
// The stream of HTTP+SSE takes a few seconds to come back; nothing else has to.
const tries = kind === "sse" ? 30 : 1;
for (let n = 1; n <= tries; n++) {
  try {
    facts.again = text(await call("browser_navigate", navigate));
    break;
  } catch (error) {
    if (n === tries) throw error;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}
await client.close();
console.log(JSON.stringify(facts));
process.exit(0);
