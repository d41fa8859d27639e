import type { Virtualizer } from '@tanstack/react-virtual';
import { type RefObject, useEffect, useState } from 'react';

/** Follows the end of a log as long as the reader is there. */
export interface Follow {
  following: boolean;
  /** Lines that came since the reader left the end. */
  fresh: number;
  onScroll: () => void;
  jump: () => void;
}

/** The reader counts as being at the end within this many pixels. */
const NEAR = 24;

/** Keeps the end of the log in sight until the reader scrolls up, and again from when the end is reached. */
export function useFollow(
  frame: RefObject<HTMLDivElement | null>,
  virtualizer: Virtualizer<HTMLDivElement, Element>,
  count: number,
): Follow {
  const [following, setFollowing] = useState(true);
  const [left, setLeft] = useState(0);
  useEffect(() => {
    if (following && count > 0) virtualizer.scrollToIndex(count - 1, { align: 'end' });
  }, [following, count, virtualizer]);
  const onScroll = (): void => {
    const { current } = frame;
    if (current === null) return;
    const atEnd = current.scrollHeight - current.scrollTop - current.clientHeight < NEAR;
    if (atEnd !== following) {
      setFollowing(atEnd);
      setLeft(count);
    }
  };
  return {
    following,
    fresh: following ? 0 : Math.max(0, count - left),
    onScroll,
    jump: () => setFollowing(true),
  };
}
