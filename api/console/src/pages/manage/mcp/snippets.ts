/** Programs for which there is a snippet, in their order. */
export const PROGRAMS = ['claude', 'cursor', 'vscode', 'goose', 'mcp-remote', 'typescript'] as const;

/** A program that can use the agent's tools. */
export type Program = (typeof PROGRAMS)[number];

/** Kind of tools: of the browser or of the desktop. */
export type Tools = 'browser' | 'computer';

/** Values in a snippet. */
export interface Access {
  /** Address of the service, without a slash at its end. */
  address: string;
  tools: Tools;
  token: string;
}

/** File that a snippet goes to; absent for a command and for source code. */
export const FILES: Partial<Record<Program, string>> = {
  cursor: '~/.cursor/mcp.json',
  vscode: '.vscode/mcp.json',
  goose: '~/.config/goose/config.yaml',
};

const json = (value: unknown): string => JSON.stringify(value, null, 2);

/** Writes a text for a POSIX shell within double quotes. */
const quoted = (text: string): string => `"${text.replace(/[\\"$`]/g, '\\$&')}"`;

/** Makes the snippet for a program. */
export function makeSnippet(program: Program, { address, tools, token }: Access): string {
  const url = `${address}/api/mcp/sse/${tools}`;
  const name = `agentyard-${tools}`;
  const bearer = `Bearer ${token}`;
  const headers = { Authorization: bearer };
  switch (program) {
    case 'claude':
      return `claude mcp add --transport http ${name} ${url} \\\n  --header ${quoted(`Authorization: ${bearer}`)}`;
    case 'cursor':
      return json({ mcpServers: { [name]: { url, headers } } });
    case 'vscode':
      return json({ servers: { [name]: { type: 'http', url, headers } } });
    case 'goose':
      return gooseConfig(name, url, bearer);
    case 'mcp-remote':
      return json({ mcpServers: { [name]: remoteServer(url, bearer) } });
    case 'typescript':
      return typescriptCode(url, bearer);
  }
}

function gooseConfig(name: string, url: string, bearer: string): string {
  return [
    'extensions:',
    `  ${name}:`,
    '    enabled: true',
    '    type: streamable_http',
    `    name: ${name}`,
    `    uri: ${JSON.stringify(url)}`,
    '    headers:',
    `      Authorization: ${JSON.stringify(bearer)}`,
    '    timeout: 300',
  ].join('\n');
}

function remoteServer(url: string, bearer: string): Record<string, unknown> {
  // A space within an argument is lost by some programs: the header's value comes from the environment.
  const args = [
    '-y',
    'mcp-remote',
    url,
    '--transport',
    'http-only',
    '--header',
    'Authorization:${AUTHORIZATION}',
  ];
  if (url.startsWith('http:')) args.push('--allow-http');
  return { command: 'npx', args, env: { AUTHORIZATION: bearer } };
}

function typescriptCode(url: string, bearer: string): string {
  return `import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const client = new Client({ name: 'my-program', version: '1.0.0' });
await client.connect(
  new StreamableHTTPClientTransport(new URL(${JSON.stringify(url)}), {
    requestInit: { headers: { Authorization: ${JSON.stringify(bearer)} } },
  }),
);
console.log(await client.listTools());
await client.close();`;
}
