import { ActionIcon, Button, Switch } from '@mantine/core';
import IconChevronDown from '@tabler/icons-react/icons/IconChevronDown';
import IconChevronUp from '@tabler/icons-react/icons/IconChevronUp';
import IconDownload from '@tabler/icons-react/icons/IconDownload';
import type { ReactNode } from 'react';

import { useT } from '../../i18n';
import { SearchField } from '../table/SearchField';
import styles from './log.module.css';

interface Props {
  count: number;
  words: string;
  onWords: (words: string) => void;
  /** Number of lines with finds, and which of them is shown, from 0. */
  finds: number;
  find: number;
  onFind: (find: number) => void;
  wrap: boolean;
  onWrap: (wrap: boolean) => void;
  times: boolean;
  onTimes: (times: boolean) => void;
  onDownload: () => void;
}

/** Search and switches above a log. */
export function LogTools(props: Props): ReactNode {
  const t = useT();
  const { finds, find, onFind } = props;
  const step = (by: number): void => onFind((find + by + finds) % finds);
  return (
    <div className={styles.tools}>
      <SearchField
        value={props.words}
        label={t('log.search', { count: props.count })}
        onChange={props.onWords}
      />
      {props.words !== '' && (
        <span className={styles.finds} role="status">
          {finds === 0 ? t('log.no.matches') : t('log.matches', { at: find + 1, total: finds })}
        </span>
      )}
      {finds > 0 && (
        <>
          <ActionIcon variant="default" aria-label={t('log.previous')} onClick={() => step(-1)}>
            <IconChevronUp size={16} aria-hidden />
          </ActionIcon>
          <ActionIcon variant="default" aria-label={t('log.next')} onClick={() => step(1)}>
            <IconChevronDown size={16} aria-hidden />
          </ActionIcon>
        </>
      )}
      <span className="grow" />
      <Switch
        size="xs"
        label={t('log.wrap')}
        checked={props.wrap}
        onChange={(e) => props.onWrap(e.currentTarget.checked)}
      />
      <Switch
        size="xs"
        label={t('log.times')}
        checked={props.times}
        onChange={(e) => props.onTimes(e.currentTarget.checked)}
      />
      <Button
        size="compact-sm"
        leftSection={<IconDownload size={14} aria-hidden />}
        onClick={props.onDownload}
      >
        {t('log.download')}
      </Button>
    </div>
  );
}
