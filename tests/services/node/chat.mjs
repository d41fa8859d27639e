// A user of the chat: signs in, sends each text to a new conversation, and prints the kind and text of each answer on a line.
// usage: PASSWORD=… node chat.mjs ADDRESS USER TEXT…
import { setTimeout as sleep } from 'node:timers/promises';
import WebSocket from 'ws';

const [address, username, ...texts] = process.argv.slice(2);
const ANSWERS = ['answer', 'failure'];
const cookies = new Map();

// The body of the answer; ends the program if it is a failure.
async function request(path, fields) {
  const headers = { cookie: [...cookies].map((pair) => pair.join('=')).join('; '), origin: address };
  const body = fields && new URLSearchParams(fields);
  const answer = await fetch(address + path, { method: body ? 'POST' : 'GET', headers, body });
  for (const line of answer.headers.getSetCookie()) {
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
    cookies.set(name, value);
  }
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

await request('/api/login', { username, password: process.env.PASSWORD });
const { csrf_token } = await request('/api/csrf');
const { conversation } = await request('/api/agent/chat/create', { csrf_token });
const url = `${address.replace('http', 'ws')}/api/agent/chat/ws?id=${conversation.id}`;
const socket = new WebSocket(url, { origin: address, headers: { cookie: [...cookies].map((pair) => pair.join('=')).join('; ') } });
const entries = new Map();
socket.on('message', (data) => {
  const frame = JSON.parse(data);
  if (frame.type === 'entry') entries.set(frame.entry.id, frame.entry);
});
await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
const list = () => [...entries.values()].filter((entry) => ANSWERS.includes(entry.kind) && !entry.streaming);
for (const [number, text] of texts.entries()) {
  socket.send(JSON.stringify({ type: 'send', client_id: `m${number}`, text }));
  for (let tries = 0; list().length <= number; tries += 1) {
    if (tries === 300) throw new Error(`no answer to ${JSON.stringify(text)}: ${JSON.stringify([...entries.values()])}`);
    await sleep(100);
  }
  const { kind, text: answer } = list()[number];
  console.log(`${kind} ${answer}`);
}
socket.close();
