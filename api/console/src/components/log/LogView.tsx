import { Button } from '@mantine/core';
import { useVirtualizer } from '@tanstack/react-virtual';
import { type ReactNode, useMemo, useRef, useState } from 'react';

import { useT } from '../../i18n';
import { saveFile } from '../save-file';
import { findLines, logFile, type LogLine } from './log-lines';
import styles from './log.module.css';
import { LogRow } from './LogRow';
import { LogTools } from './LogTools';
import { useFollow } from './useFollow';

interface Props {
  lines: LogLine[];
  /** Name of the file that is downloaded. */
  fileName: string;
  /** Height of the list by CSS; a class of the page. */
  className?: string;
}

/** A log of any length: follows its end, finds words, wraps, shows times, downloads. */
export function LogView({ lines, fileName, className }: Props): ReactNode {
  'use no memo';
  const t = useT();
  const frame = useRef<HTMLDivElement>(null);
  const [words, setWords] = useState('');
  const [find, setFind] = useState(0);
  const [wrap, setWrap] = useState(false);
  const [times, setTimes] = useState(true);
  const finds = useMemo(() => findLines(lines, words), [lines, words]);
  // The virtual list measures by itself and is not memoised.
  // eslint-disable-next-line react-hooks/incompatible-library
  const virtualizer = useVirtualizer({
    count: lines.length,
    getScrollElement: () => frame.current,
    estimateSize: () => 20,
    overscan: 20,
  });
  const follow = useFollow(frame, virtualizer, lines.length);
  const show = (at: number, found = finds): void => {
    setFind(at);
    const line = found[at];
    if (line !== undefined) virtualizer.scrollToIndex(line, { align: 'center' });
  };
  const search = (next: string): void => {
    setWords(next);
    const found = findLines(lines, next);
    show(Math.max(0, found.length - 1), found);
  };
  const current = finds[find];
  return (
    <div className={styles.log}>
      <LogTools
        count={lines.length}
        words={words}
        onWords={search}
        finds={finds.length}
        find={Math.min(find, Math.max(0, finds.length - 1))}
        onFind={show}
        wrap={wrap}
        onWrap={(on) => {
          setWrap(on);
          virtualizer.measure();
        }}
        times={times}
        onTimes={setTimes}
        onDownload={() => saveFile(logFile(lines), fileName)}
      />
      {/* A region that scrolls has to be reached by keyboard. */}
      <div
        ref={frame}
        className={`${styles.frame ?? ''} ${className ?? ''}`}
        onScroll={follow.onScroll}
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
        tabIndex={0}
        role="region"
        aria-label={t('log.label')}
        data-wrap={wrap || undefined}
        data-empty={lines.length === 0 || undefined}
      >
        {lines.length === 0 && <p className={styles.empty}>{t('log.empty')}</p>}
        <div className={styles.lines} style={{ height: virtualizer.getTotalSize() }}>
          {virtualizer.getVirtualItems().map((item) => {
            const line = lines[item.index];
            return (
              <div
                key={item.key}
                ref={virtualizer.measureElement}
                data-index={item.index}
                className={styles.item}
                style={{ transform: `translateY(${item.start}px)` }}
              >
                {line && <LogRow line={line} words={words} times={times} current={item.index === current} />}
              </div>
            );
          })}
        </div>
      </div>
      {!follow.following && (
        <Button className={styles.jump} variant="filled" size="compact-sm" onClick={follow.jump}>
          {follow.fresh > 0
            ? `${t('log.new', { count: follow.fresh })} · ${t('log.follow')}`
            : t('log.follow')}
        </Button>
      )}
    </div>
  );
}
