// A scripted model server with the OpenAI interface: `/models` and `/chat/completions`, streamed and whole.
// usage: node model.mjs [--listen 127.0.0.1:0] [--key KEY] [--model NAME]… [--delay MILLISECONDS] [--script TEXT=SCRIPT]…
// Prints its base address (`http://127.0.0.1:4000/v1`) once it listens. The last text of the user is the script: if each of its
// lines is a command, they are done in order; any other text is answered by `You said: <text>`.
//
//   CALL <tool> <json>     a tool call (several lines: several calls); the result is answered by `The tool said: …`
//   THEN                   what follows is done after the results of the calls before it
//   SAY <text>             text of the answer; `\n` is a line break
//   THINK <text>           reasoning
//   STREAM <n>             n words, 50 ms apart; while the answer is not streamed, at once after that time
//   WAIT <seconds>         nothing happens
//   LONG <n>               n characters
//   MARKDOWN               a text with everything that Markdown knows, and HTML
//   EMPTY                  an empty answer
//   CUT                    the connection breaks off here
//   END                    the answer ends here: a streamed one without its end mark, a whole one without a body
//   FAIL <status> [text]   that status; the body holds the text, the key and the address
//   FAILONCE <status> [text]   the same, for the first request with this script only
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const { values: options } = parseArgs({
  options: {
    listen: { type: 'string', default: '127.0.0.1:0' },
    key: { type: 'string' },
    model: { type: 'string', multiple: true, default: ['fake'] },
    delay: { type: 'string', default: '0' },
    script: { type: 'string', multiple: true, default: [] },
  },
});
const [, host, port] = /^\[?(.*?)\]?:(\d+)$/.exec(options.listen) ?? [];
if (host === undefined) throw new Error('--listen wants ADDRESS:PORT');

const BODY_LIMIT = 256 * 1024 * 1024;
const WORDS = ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten'];
const ARGUMENT = { CALL: true, SAY: true, THINK: true, STREAM: true, WAIT: true, LONG: true, FAIL: true, FAILONCE: true };
const BARE = { MARKDOWN: true, EMPTY: true, CUT: true, END: true, THEN: true };
const MARKDOWN = `# A heading

Some *emphasis*, **strong text**, ~~struck text~~ and \`code\`.

## A smaller heading

\`\`\`rust
fn main() { println!("1 < 2 && 2 > 1"); }
\`\`\`

| name | value |
|------|------:|
| one  |     1 |
| two  |     2 |

- first
- second
  1. nested
- [ ] to do

> A quotation.

[A link](https://example.org/page?a=1&b=2), [a script](javascript:alert(1)) and <https://example.org/>.

![A picture](https://example.org/picture.png)

<b onclick="alert(2)">HTML</b>
<script>window.scriptRan = true</script>
<img src="x" onerror="window.imageRan = true">
<iframe src="https://example.org/"></iframe>
`;

class Failure extends Error {
  constructor(status, message, type, code = null) {
    super(message);
    this.status = status;
    this.body = { error: { message, type, param: null, code } };
  }
}

// What a person would write, and its script.
const scripts = new Map(options.script.map((pair) => {
  const at = pair.indexOf('=');
  return [pair.slice(0, at), pair.slice(at + 1)];
}));

function parseScript(asked) {
  const text = scripts.get(asked.trim()) ?? asked;
  const commands = text.trim().split('\n').map((line) => {
    const [, name, rest] = /^([A-Z]+)(?: (.*))?$/.exec(line.trim()) ?? [];
    const known = (ARGUMENT[name] && rest) || (BARE[name] && rest === undefined);
    return known ? { name, rest } : undefined;
  });
  if (commands.some((command) => !command)) return [[{ name: 'SAY', rest: `You said: ${text}` }]];
  const rounds = [[]];
  for (const command of commands) {
    if (command.name === 'THEN') rounds.push([]);
    else rounds.at(-1).push(command);
  }
  return rounds;
}

function readText(content) {
  if (typeof content === 'string') return content;
  const pieces = Array.isArray(content) ? content : [];
  const text = pieces.filter((piece) => piece.type === 'text').map((piece) => piece.text).join('\n');
  const pictures = pieces.filter((piece) => piece.type === 'image_url').length;
  return pictures ? `${text} (with ${pictures} ${pictures === 1 ? 'picture' : 'pictures'})`.trim() : text;
}

// The commands of this request: a round for each answer that the model has given since the user's last text.
function chooseRound(messages) {
  const from = messages.findLastIndex((message) => message.role === 'user');
  const text = from < 0 ? '' : readText(messages[from].content);
  const rounds = parseScript(text);
  const round = messages.slice(from + 1).filter((message) => message.role === 'assistant').length;
  if (round < rounds.length) return { text, commands: rounds[round] };
  const results = messages.slice(from + 1).filter((message) => message.role === 'tool');
  const said = readText(results.at(-1)?.content ?? '').slice(0, 200);
  return { text, commands: [{ name: 'SAY', rest: `The tool said: ${said}` }] };
}

const failedOnce = new Set();

function fail({ name, rest }, { text, key, url }) {
  if (name === 'FAILONCE') {
    if (failedOnce.has(text)) return;
    failedOnce.add(text);
  }
  const [, status, words] = /^(\d{3})(?: (.*))?$/.exec(rest) ?? ['', '500', rest];
  const code = { 401: 'invalid_api_key', 429: 'insufficient_quota' }[status] ?? null;
  throw new Failure(Number(status), `${words ?? 'scripted failure'}: key ${key} at ${url}`, 'scripted_error', code);
}

let calls = 0;

// Yields deltas as a streamed answer has them.
async function* perform(commands, request) {
  let index = 0;
  let spoken = false;
  for (const command of commands) {
    const { name, rest } = command;
    switch (name) {
      case 'SAY': {
        const words = (spoken ? `\n${rest}` : rest).replaceAll('\\n', '\n').match(/\s*\S+\s*/g) ?? [];
        for (const word of words) yield { content: word };
        spoken = true;
        break;
      }
      case 'THINK':
        for (const word of rest.match(/\s*\S+\s*/g) ?? []) yield { reasoning_content: word };
        break;
      case 'STREAM':
        for (let at = 0; at < Number(rest); at += 1) {
          await sleep(50);
          yield { content: `${at ? ' ' : ''}${WORDS[at % WORDS.length]}` };
        }
        break;
      case 'WAIT':
        await sleep(Number(rest) * 1000);
        break;
      case 'LONG':
        for (let left = Number(rest); left > 0; left -= 4000) {
          yield { content: '0123456789'.repeat(400).slice(0, Math.min(left, 4000)) };
        }
        break;
      case 'MARKDOWN':
        for (const line of MARKDOWN.split(/(?<=\n)/)) yield { content: line };
        break;
      case 'CALL': {
        const [, tool, json] = /^(\S+)(?: (.*))?$/.exec(rest);
        const call = { name: tool, arguments: json ?? '{}' };
        yield { tool_calls: [{ index, id: `call_${(calls += 1)}`, type: 'function', function: call }] };
        index += 1;
        break;
      }
      case 'CUT':
        // Time for the network to carry what was written.
        await sleep(100);
        yield { cut: true };
        return;
      case 'END':
        yield { end: true };
        return;
      case 'FAIL':
      case 'FAILONCE':
        fail(command, request);
        break;
    }
  }
}

async function readBody(request) {
  const pieces = [];
  let length = 0;
  for await (const piece of request) {
    length += piece.length;
    if (length > BODY_LIMIT) throw new Failure(413, 'Request body too large', 'invalid_request_error');
    pieces.push(piece);
  }
  try {
    return { body: JSON.parse(Buffer.concat(pieces)), length };
  } catch {
    throw new Failure(400, 'We could not parse the JSON body of your request.', 'invalid_request_error');
  }
}

function usage(length, answer) {
  const prompt = Math.ceil(length / 4);
  const completion = Math.ceil(answer / 4);
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

async function answerStreamed(response, head, deltas, length) {
  let written = 0;
  let finish = 'stop';
  const send = (choice, more) => {
    if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
    const chunk = { ...head, object: 'chat.completion.chunk', choices: choice ? [{ index: 0, ...choice }] : [], ...more };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  for await (const delta of deltas) {
    if (response.destroyed) return;
    if (delta.cut) {
      response.destroy();
      return;
    }
    if (delta.end) {
      response.end();
      return;
    }
    if (delta.tool_calls) finish = 'tool_calls';
    written += delta.content?.length ?? 0;
    send({ delta: { role: 'assistant', ...delta }, finish_reason: null });
  }
  send({ delta: {}, finish_reason: finish });
  send(undefined, { usage: usage(length, written) });
  response.end('data: [DONE]\n\n');
}

async function answerWhole(response, head, deltas, length) {
  const message = { role: 'assistant', content: '' };
  for await (const delta of deltas) {
    if (delta.cut) {
      response.destroy();
      return;
    }
    if (delta.end) {
      response.end();
      return;
    }
    message.content += delta.content ?? '';
    if (delta.reasoning_content) message.reasoning_content = (message.reasoning_content ?? '') + delta.reasoning_content;
    for (const { index, ...call } of delta.tool_calls ?? []) (message.tool_calls ??= [])[index] = call;
  }
  const choice = { index: 0, message, finish_reason: message.tool_calls ? 'tool_calls' : 'stop' };
  sendJson(response, 200, {
    ...head, object: 'chat.completion', choices: [choice], usage: usage(length, message.content.length),
  });
}

function sendJson(response, status, value) {
  const text = JSON.stringify(value);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

function checkKey(given) {
  if (options.key === undefined || given === options.key) return;
  if (!given) throw new Failure(401, "You didn't provide an API key.", 'invalid_request_error');
  throw new Failure(401, `Incorrect API key provided: ${given}.`, 'invalid_request_error', 'invalid_api_key');
}

async function route(request, response) {
  const path = new URL(request.url, 'http://model').pathname;
  const key = /^Bearer (.*)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
  checkKey(key);
  if (request.method === 'GET' && path === '/v1/models') {
    const data = options.model.map((id) => ({ id, object: 'model', created: 0, owned_by: 'tests' }));
    return sendJson(response, 200, { object: 'list', data });
  }
  if (request.method !== 'POST' || path !== '/v1/chat/completions') {
    throw new Failure(404, `Invalid URL (${request.method} ${path})`, 'invalid_request_error');
  }
  const { body, length } = await readBody(request);
  if (!options.model.includes(body.model)) {
    const message = `The model \`${body.model}\` does not exist or you do not have access to it.`;
    throw new Failure(404, message, 'invalid_request_error', 'model_not_found');
  }
  if (!Array.isArray(body.messages)) throw new Failure(400, "'messages' must be an array.", 'invalid_request_error');
  const { text, commands } = chooseRound(body.messages);
  await sleep(Number(options.delay));
  const head = { id: `chatcmpl-${calls}`, created: Math.floor(Date.now() / 1000), model: body.model };
  const deltas = perform(commands, { text, key, url: `http://${request.headers.host}${request.url}` });
  return (body.stream ? answerStreamed : answerWhole)(response, head, deltas, length);
}

const server = createServer((request, response) => {
  route(request, response).catch((error) => {
    if (response.headersSent || response.destroyed) response.destroy();
    else if (error instanceof Failure) sendJson(response, error.status, error.body);
    else {
      console.error(error);
      sendJson(response, 500, { error: { message: String(error), type: 'server_error', param: null, code: null } });
    }
  });
});
server.listen(Number(port), host, () => {
  const { address, port: bound, family } = server.address();
  console.log(`http://${family === 'IPv6' ? `[${address}]` : address}:${bound}/v1`);
});
