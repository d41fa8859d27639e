import { Button } from '@mantine/core';
import { type ReactNode, useState } from 'react';

import { type LogLine, readLog } from '../components/log/log-lines';
import { LogView } from '../components/log/LogView';

const start = Date.now() - 3_600_000;
const line = (at: number): string =>
  `${new Date(start + at * 300).toISOString().replace('Z', '123456Z')} request ${at} took ${(at * 37) % 900} ms`;
const FIRST: LogLine[] = [
  ...readLog(Array.from({ length: 9997 }, (_, at) => line(at)).join('\n')),
  ...readLog('2026-11-12T09:12:00Z \u001b[31mred\u001b[0m <script>alert(1)</script> \u202ereversed'),
  ...readLog(`2026-11-12T09:12:01Z a long line: ${'word '.repeat(80)}`),
  { text: 'Container ended with exit code 1', mark: true },
];

/** A log of 10,000 lines that grows. */
export function LogSamples(): ReactNode {
  const [lines, setLines] = useState(FIRST);
  const more = (): void => setLines([...lines, ...readLog(line(lines.length))]);
  return (
    <>
      <Button onClick={more}>Add a line</Button>
      <LogView lines={lines} fileName="sample.log" />
      <LogView lines={[]} fileName="empty.log" />
    </>
  );
}
