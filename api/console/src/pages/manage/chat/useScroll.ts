import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from 'react';

/** The reader counts as being at the end within this many pixels. */
const NEAR = 48;

/** The browser itself keeps the place of the reader, but not at the very top. */
function isAnchored(list: HTMLElement): boolean {
  return list.scrollTop > 0 && CSS.supports('overflow-anchor', 'auto');
}

/** Position of the reader in the messages. */
export interface Scroll {
  atEnd: boolean;
  onScroll: () => void;
  jump: () => void;
}

/**
 * Keeps the end in sight as long as the reader is there, and the place of the reader when earlier entries
 * come before it. `first`: id of the first entry; `sent`: number of the user's messages on their way.
 */
export function useScroll(
  frame: RefObject<HTMLDivElement | null>,
  content: RefObject<HTMLDivElement | null>,
  first: number | undefined,
  sent: number,
): Scroll {
  const [atEnd, setAtEnd] = useState(true);
  const end = useRef(true);
  const height = useRef(0);
  const top = useRef(0);
  const sentBefore = useRef(sent);
  const before = useRef(first);
  useLayoutEffect(() => {
    const { current } = frame;
    if (current === null) return;
    const earlier = first !== undefined && before.current !== undefined && first < before.current;
    if (earlier && !end.current && !isAnchored(current))
      current.scrollBy({ top: current.scrollHeight - height.current, behavior: 'instant' });
    before.current = first;
    height.current = current.scrollHeight;
  }, [first, frame]);
  useLayoutEffect(() => {
    if (sent > sentBefore.current) {
      end.current = true;
      frame.current?.scrollTo({ top: frame.current.scrollHeight, behavior: 'instant' });
    }
    sentBefore.current = sent;
  }, [sent, frame]);
  useEffect(() => {
    if (content.current === null || frame.current === null) return;
    const observer = new ResizeObserver(() => {
      const { current } = frame;
      if (current === null) return;
      if (end.current) current.scrollTo({ top: current.scrollHeight, behavior: 'instant' });
      height.current = current.scrollHeight;
    });
    observer.observe(content.current);
    observer.observe(frame.current);
    return () => observer.disconnect();
  }, [content, frame]);
  const onScroll = (): void => {
    const { current } = frame;
    if (current === null) return;
    height.current = current.scrollHeight;
    // What was added after the list followed its end is no move of the reader.
    const isUp = current.scrollTop < top.current;
    top.current = current.scrollTop;
    const isNear = current.scrollHeight - current.scrollTop - current.clientHeight < NEAR;
    if (isNear || isUp) end.current = isNear;
    setAtEnd(end.current);
  };
  const jump = (): void => {
    const { current } = frame;
    if (current === null) return;
    end.current = true;
    setAtEnd(true);
    current.scrollTo({ top: current.scrollHeight, behavior: 'instant' });
  };
  return { atEnd, onScroll, jump };
}
