import { Button } from '@mantine/core';
import type { ReactNode } from 'react';

import { EmptyState } from '../../../components/EmptyState';
import { useT } from '../../../i18n';
import { downloadUrl } from './FileMenu';

/** Offers the download of a file that is not shown here. */
export function NoPreview({ path }: { path: string }): ReactNode {
  const t = useT();
  return (
    <div className="card">
      <EmptyState
        title={t('files.no.preview')}
        text={t('files.no.preview.text')}
        action={
          <Button component="a" href={downloadUrl(path)} download variant="filled">
            {t('files.download')}
          </Button>
        }
      />
    </div>
  );
}
