import { useEffect, useRef } from 'react';

/**
 * Scrolls to the field of the setting that the address names: the field itself gets the focus when a part of the page led
 * there (`revealed` counts that). Each is done once, as soon as the field is there; `shown` tells of other fields.
 */
export function useReveal(key: string | undefined, revealed: number, shown: string): void {
  const done = useRef('');
  useEffect(() => {
    const goal = `${revealed} ${key ?? ''}`;
    const row = key === undefined ? null : document.getElementById(key);
    if (row === null || done.current === goal) return;
    done.current = goal;
    row.scrollIntoView({ block: 'center' });
    const control = row.querySelector<HTMLElement>('input, textarea, select, button');
    (revealed > 0 ? (control ?? row) : row).focus({ preventScroll: true });
  }, [key, revealed, shown]);
}
