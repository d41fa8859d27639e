import { Progress } from '@mantine/core';
import type { ReactNode } from 'react';

import type { Schemas } from '../../../api/types';
import { useT, useTranslation } from '../../../i18n';
import { byteSize } from '../../../i18n/values';
import styles from './files.module.css';

/** Space that the agent's files take, beside what they may take. */
export function SpaceUsed({ files }: { files: Schemas['Files'] }): ReactNode {
  const t = useT();
  const { language } = useTranslation();
  const { usage, quota_mb: quota, quota_files: most } = files;
  if (!usage) return null;
  const used = byteSize(usage.used_bytes, language);
  const total = quota * 1024 * 1024;
  const percent = total > 0 ? Math.min(100, (usage.used_bytes / total) * 100) : 0;
  return (
    <span className={styles.space}>
      {total > 0 ? t('files.used.of', { used, total: byteSize(total, language) }) : t('files.used', { used })}
      {total > 0 && (
        <Progress
          className={styles.spaceBar}
          size="sm"
          value={percent}
          color={percent > 90 ? 'bad' : 'accent'}
          aria-label={t('files.used.share')}
        />
      )}
      {most > 0 && t('files.count.of', { count: usage.entries, most })}
    </span>
  );
}
