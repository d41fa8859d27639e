/** An event of an event stream. */
export interface StreamEvent {
  name: string;
  data: string;
  /** Id from which a reader goes on, if the server gave one. */
  id?: string;
}

/** Reads the events of a stream until it ends; calls `onHeard` when anything arrives. */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  onHeard?: () => void,
): AsyncGenerator<StreamEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onHeard?.();
      rest += decoder.decode(value, { stream: true });
      const blocks = rest.split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const event = readEvent(block);
        if (event !== undefined) yield event;
      }
    }
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}

function readEvent(block: string): StreamEvent | undefined {
  let name = 'message';
  let id: string | undefined;
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    const at = line.indexOf(':');
    if (at === 0) continue;
    const field = at < 0 ? line : line.slice(0, at);
    const value = at < 0 ? '' : line.slice(at + 1).replace(/^ /, '');
    if (field === 'event') name = value;
    else if (field === 'id') id = value;
    else if (field === 'data') data.push(value);
  }
  return name === 'message' && data.length === 0 ? undefined : { name, data: data.join('\n'), id };
}
