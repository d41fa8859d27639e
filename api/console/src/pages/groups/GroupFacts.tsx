import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import type { Schemas } from '../../api/types';
import { DetailCard } from '../../components/DetailCard';
import { FactList } from '../../components/FactList';
import { Time } from '../../components/Time';
import { useT } from '../../i18n';
import { SOURCES } from '../../modules/source-texts';
import { visibleText } from '../../modules/visible-text';

/** Facts of a group. */
export function GroupFacts({ group }: { group: Schemas['Group'] }): ReactNode {
  const t = useT();
  const { name, description, source, created_at: created, id } = group;
  return (
    <DetailCard title={t('user.about')}>
      <FactList
        facts={[
          [t('objects.description'), visibleText(description)],
          [t('users.source'), t(SOURCES[source])],
          [t('objects.created'), <Time key="created" at={created} />],
          [t('object.id'), <code key="id">{id}</code>],
          [
            t('section.users'),
            <Link key="users" to="/admin/users" search={{ group: name }}>
              {t('group.users')}
            </Link>,
          ],
          [
            t('section.audit'),
            <Link key="audit" to="/admin/audit" search={{ object: `group/${name}` } as never}>
              {t('group.audit')}
            </Link>,
          ],
        ]}
      />
    </DetailCard>
  );
}
