// The MCP client of the test agent. It connects to each server as the agent's own file says, lists the tools, and calls one until
// an executor of its user answers. What came of it stands in the log, one line for each transport.
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const TOOLS = { browser: "browser_current_tab", computer: "computer_screen_size" };
// The file says `sse`; agents that can choose otherwise use the same address.
const TRANSPORTS = { sse: SSEClientTransport, http: StreamableHTTPClientTransport };

async function use(service, url, transport) {
  const client = new Client({ name: "echo-agent", version: "1.0.0" });
  await client.connect(new TRANSPORTS[transport](new URL(url)));
  const { tools } = await client.listTools();
  for (;;) {
    const result = await client.callTool({ name: TOOLS[service], arguments: {} });
    if (!result.isError) {
      const said = { service, transport, tools: tools.length, result: (result.structuredContent ?? result._meta?.["agentyard/facts"]) };
      console.log(`mcp: ${JSON.stringify(said)}`);
      return client.close();
    }
    await sleep(500);
  }
}

async function keepTrying(service, { type, url }, transport) {
  for (;;) {
    try {
      if (type !== "sse") throw new Error(`type ${type}`);
      return await use(service, url, transport);
    } catch (error) {
      console.log(`mcp: ${service} by ${transport} failed: ${error}`);
      await sleep(1000);
    }
  }
}

const { mcp } = JSON.parse(readFileSync(process.argv[2]));
for (const [service, server] of Object.entries(mcp.servers)) {
  for (const transport of Object.keys(TRANSPORTS)) keepTrying(service, server, transport);
}
