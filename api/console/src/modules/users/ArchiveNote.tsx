import type { ReactNode } from 'react';

import type { Schemas } from '../../api/types';
import { CopyLine } from '../../components/CopyLine';
import { Rich, useT, useTranslation } from '../../i18n';
import { longTime, readHumanTime } from '../human-time';

/** Says which archive files become, how long it is kept, and how they come back. */
export function ArchiveNote({ archive }: { archive: Schemas['UserArchive'] }): ReactNode {
  const t = useT();
  const { language } = useTranslation();
  const seconds = readHumanTime(archive.kept ?? '');
  const kept = seconds === undefined ? archive.kept : longTime(seconds, language);
  const name = <code key="name">{archive.directory}</code>;
  return (
    <div>
      <p>
        {archive.kept === null ? (
          <Rich k="archive.forever" values={{ name }} />
        ) : (
          <Rich k="archive.kept" values={{ name, time: kept }} />
        )}
      </p>
      <p>{t('archive.restore')}</p>
      <CopyLine text={archive.restore} />
    </div>
  );
}
