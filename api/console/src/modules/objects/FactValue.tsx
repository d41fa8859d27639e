import type { ReactNode } from 'react';

import { Bytes } from '../../components/Bytes';
import { Time } from '../../components/Time';
import { useT, useTranslation } from '../../i18n';
import { byteSize, duration } from '../../i18n/values';
import { visibleText } from '../visible-text';
import { NestedFacts } from './NestedFacts';
import styles from './objects.module.css';
import { valueKind } from './value-kind';

interface Props {
  /** Name of the property, which tells its unit. */
  name: string;
  value: unknown;
}

/** A value of an object as a reader expects it: sizes, durations, times, lists and nested properties. */
export function FactValue({ name, value }: Props): ReactNode {
  const t = useT();
  const { language } = useTranslation();
  switch (valueKind(name, value)) {
    case 'nothing':
      return <span className="dim">–</span>;
    case 'flag':
      return t(value === true ? 'user.yes' : 'user.no');
    case 'bytes':
      return <Bytes value={Number(value)} />;
    case 'mebibytes':
      return value === 0 ? t('user.unlimited') : byteSize(Number(value) * 1_048_576, language);
    case 'seconds':
      return duration(Number(value), language);
    case 'cores': {
      const count = Number(value) / (name.endsWith('_nanos') ? 1e9 : 1);
      return count === 0 ? t('user.unlimited') : t('user.cores', { count });
    }
    case 'number':
      return new Intl.NumberFormat(language).format(Number(value));
    case 'time':
      return <Time at={String(value)} as="exact" />;
    case 'code':
      return <code>{visibleText(String(value))}</code>;
    case 'text':
      return <span lang="en">{visibleText(String(value))}</span>;
    case 'lines': {
      const lines = Array.isArray(value) ? value.map(String) : String(value).split('\n');
      return <pre className={styles.long}>{lines.map(visibleText).join('\n')}</pre>;
    }
    case 'words':
      return (value as unknown[]).map((word, at) => (
        <span key={at}>
          {at > 0 && ', '}
          <code>{visibleText(String(word))}</code>
        </span>
      ));
    case 'counts':
      return Object.entries(value as Record<string, number>)
        .map(([part, count]) => `${part} ${String(count)}`)
        .join(' · ');
    case 'nested':
      return <NestedFacts value={value as object} />;
  }
}
