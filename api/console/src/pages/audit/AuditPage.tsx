import { Button } from '@mantine/core';
import IconDownload from '@tabler/icons-react/icons/IconDownload';
import { useMutation } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { get } from '../../api/client';
import { Failure } from '../../api/failure';
import type { Schemas } from '../../api/types';
import { ErrorState } from '../../components/ErrorState';
import { useT } from '../../i18n';
import { ownUrl } from '../../prefix';
import { ObjectsPage } from '../objects/ObjectsPage';
import { TrailVerdict } from './TrailVerdict';

/** The audit trail: who did what, its verification and its export. */
export function AuditPage(): ReactNode {
  const t = useT();
  const verify = useMutation({
    mutationFn: () => get<Schemas['AuditVerdict']>('/api/admin/audit/verify'),
  });
  const actions = (
    <div className="row">
      <Button disabled={verify.isPending} onClick={() => verify.mutate()}>
        {verify.isPending ? t('preview.working') : t('audit.verify')}
      </Button>
      <Button
        component="a"
        href={ownUrl('/api/admin/audit/export')}
        download
        leftSection={<IconDownload size={16} aria-hidden />}
      >
        {t('audit.export')}
      </Button>
    </div>
  );
  return (
    <ObjectsPage actions={actions}>
      {verify.error && <ErrorState title={t('audit.verify.failed')} failure={Failure.from(verify.error)} />}
      {verify.data && <TrailVerdict verdict={verify.data} />}
    </ObjectsPage>
  );
}
