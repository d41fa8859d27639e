import { Button } from '@mantine/core';
import { type ReactNode, useState } from 'react';

import type { Schemas } from '../../api/types';
import { Actor } from '../../components/Actor';
import { Copy } from '../../components/Copy';
import { DialogFrame } from '../../components/DialogFrame';
import dialog from '../../components/dialog.module.css';
import { FactList } from '../../components/FactList';
import { Time } from '../../components/Time';
import { useT } from '../../i18n';
import { ObjectLinks } from '../../modules/objects/ObjectLinks';
import { visibleText } from '../../modules/visible-text';

/** Number of an entry of the trail, which opens all that is recorded of it. */
export function AuditEntryButton({ entry }: { entry: Schemas['AuditEntry'] }): ReactNode {
  const t = useT();
  const [open, setOpen] = useState(false);
  const {
    seq,
    at,
    actor,
    action,
    object,
    outcome,
    detail,
    address,
    request_id: request,
    count,
    last_at: last,
  } = entry;
  return (
    <>
      <Button
        size="compact-sm"
        variant="subtle"
        aria-label={t('audit.entry', { seq: String(seq) })}
        onClick={() => setOpen(true)}
      >
        {`#${String(seq)}`}
      </Button>
      <DialogFrame
        opened={open}
        title={t('audit.entry', { seq: String(seq) })}
        size={620}
        onClose={() => setOpen(false)}
      >
        <FactList
          facts={[
            [t('list.time'), <Time key="at" at={at} as="exact" />],
            [t('audit.last'), last && <Time at={last} as="exact" />],
            [t('audit.count'), count > 1 && count],
            [
              t('audit.actor'),
              <>
                <Actor name={actor} /> <code>{visibleText(actor)}</code>
              </>,
            ],
            [t('audit.action'), <code key="action">{action}</code>],
            [t('list.object'), object !== '' && <ObjectLinks objects={object} />],
            [t('audit.outcome'), outcome],
            [t('audit.detail'), detail !== '' && <span lang="en">{visibleText(detail)}</span>],
            [t('user.sessions.address'), address],
            [t('audit.request'), request !== '' && <code>{request}</code>],
          ]}
        />
        <div className={dialog.buttons}>
          <Copy text={JSON.stringify(entry, null, 2)} label={t('audit.copy')} />
          <Button onClick={() => setOpen(false)}>{t('dialog.close')}</Button>
        </div>
      </DialogFrame>
    </>
  );
}
