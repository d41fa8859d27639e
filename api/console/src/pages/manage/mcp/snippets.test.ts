import { expect, test } from 'vitest';

import { makeSnippet, PROGRAMS } from './snippets';

const access = { address: 'http://10.0.0.1:8080/yard', tools: 'computer', token: 'al+x:00ff' } as const;

test('every snippet has the address and the token', () => {
  for (const program of PROGRAMS) {
    const snippet = makeSnippet(program, access);
    expect(snippet).toContain('http://10.0.0.1:8080/yard/api/mcp/sse/computer');
    expect(snippet).toContain('Bearer al+x:00ff');
  }
});

test('remote bridge keeps spaces out of its arguments and takes plain http', () => {
  const snippet = JSON.parse(makeSnippet('mcp-remote', access)) as {
    mcpServers: Record<string, { args: string[]; env: Record<string, string> }>;
  };
  const server = snippet.mcpServers['agentyard-computer'];
  expect(server?.args.some((argument) => argument.includes(' '))).toBe(false);
  expect(server?.args).toContain('--allow-http');
  const secure = makeSnippet('mcp-remote', { ...access, address: 'https://a.example' });
  expect(secure).not.toContain('--allow-http');
});

test('shell characters do not end the quotes', () => {
  expect(makeSnippet('claude', { ...access, token: 'a"$b' })).toContain('Bearer a\\"\\$b"');
});
