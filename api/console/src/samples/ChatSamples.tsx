import type { ReactNode } from 'react';

import type { Entry } from '../chat/protocol';
import { EntryRow } from '../pages/manage/chat/EntryRow';
import { TurnLine } from '../pages/manage/chat/TurnLine';
import { PendingMessage } from '../pages/manage/chat/UserMessage';

const at = new Date(Date.now() - 180_000).toISOString();
const today = new Date().setHours(0, 0, 0, 0);
const MARKDOWN = `## A plan

Some *text* with \`code\` and a [link](https://example.org).

\`\`\`js
const sum = (a, b) => a + b;
\`\`\`

| File | Size |
|---|---:|
| notes.txt | 12 |

- one
- two

> quoted`;

const user = (id: number, text: string, status: 'sent' | 'joined' | 'unanswered'): Entry => ({
  id,
  at,
  kind: 'user',
  text,
  client_id: null,
  attachments: [],
  status,
});

const ENTRIES: Entry[] = [
  user(1, 'What is in my workspace?', 'sent'),
  { id: 2, at, kind: 'thought', text: 'I should look.', streaming: false },
  {
    id: 3,
    at,
    kind: 'tools',
    calls: [
      { name: 'list_dir', arguments: '{"path": "."}', cut: false, explanation: null },
      { name: 'weather_now', arguments: '{"city": "Ber', cut: true, explanation: 'Asks for the weather' },
    ],
  },
  { id: 4, at, kind: 'answer', text: MARKDOWN, model: 'm-1', streaming: false, used_percent: 86 },
  user(5, 'And now?', 'joined'),
  {
    id: 6,
    at,
    kind: 'files',
    text: null,
    files: [
      {
        name: 'report.pdf',
        content_type: 'application/pdf',
        size: 1_200_000,
        file: 'f1',
        picture: false,
        error: null,
      },
      {
        name: 'gone.bin',
        content_type: '',
        size: null,
        file: null,
        picture: false,
        error: 'the agent restarted',
      },
    ],
  },
  { id: 7, at, kind: 'failure', code: 'key', text: 'Status: 401' },
  { id: 8, at, kind: 'notice', code: 'stopped', text: '' },
  user(9, 'Are you there?', 'unanswered'),
];

const nothing = (): void => undefined;

/** Entries of a conversation of all kinds. */
export function ChatSamples(): ReactNode {
  const refused = { code: 'too_many_waiting', message: '' };
  const pending = { client_id: 'a', text: 'One more', attachments: [], at, refused };
  return (
    <div className="card">
      {ENTRIES.map((entry) => (
        <EntryRow key={entry.id} conversation="c" entry={entry} today={today} />
      ))}
      <PendingMessage pending={pending} connected sendAgain={nothing} edit={nothing} discard={nothing} />
      <TurnLine
        state={{
          agent: 'connected',
          message: null,
          turn: { since: at, stopping: false },
          typing: true,
          waiting: 0,
          other: false,
        }}
      />
    </div>
  );
}
