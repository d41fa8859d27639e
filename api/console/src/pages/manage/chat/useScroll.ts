import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from 'react';

/** The reader counts as being at the end within this many pixels. */
const NEAR = 48;

/** Position of the reader in the messages. */
export interface Scroll {
  atEnd: boolean;
  onScroll: () => void;
  jump: () => void;
}

/**
 * Keeps the end in sight as long as the reader is there, and the place of the reader when earlier entries
 * come before it.
 */
export function useScroll(
  frame: RefObject<HTMLDivElement | null>,
  content: RefObject<HTMLDivElement | null>,
  first: number | undefined,
): Scroll {
  const [atEnd, setAtEnd] = useState(true);
  const end = useRef(true);
  const height = useRef(0);
  const before = useRef(first);
  useLayoutEffect(() => {
    const { current } = frame;
    if (current === null) return;
    const earlier = first !== undefined && before.current !== undefined && first < before.current;
    if (earlier && !end.current)
      current.scrollBy({ top: current.scrollHeight - height.current, behavior: 'instant' });
    before.current = first;
    height.current = current.scrollHeight;
  }, [first, frame]);
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
    end.current = current.scrollHeight - current.scrollTop - current.clientHeight < NEAR;
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
