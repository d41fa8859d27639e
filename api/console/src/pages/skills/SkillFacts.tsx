import type { ReactNode } from 'react';

import type { Schemas } from '../../api/types';
import { Bytes } from '../../components/Bytes';
import { DetailCard } from '../../components/DetailCard';
import { FactList } from '../../components/FactList';
import { Time } from '../../components/Time';
import { useT } from '../../i18n';
import { ObjectLink } from '../../modules/objects/ObjectLink';
import { visibleText } from '../../modules/visible-text';

/** Facts of a skill. */
export function SkillFacts({ skill }: { skill: Schemas['Skill'] }): ReactNode {
  const t = useT();
  const { source, number, version, license, size, file_count: files, digest, modified_at: changed } = skill;
  return (
    <DetailCard title={t('user.about')}>
      <FactList
        facts={[
          [
            t('skill.source'),
            source === 'upload' ? t('skill.upload') : <ObjectLink object={`skill-repository/${source}`} />,
          ],
          [t('objects.version'), version === '' ? number : `${number} (${visibleText(version)})`],
          [t('skill.license'), visibleText(license)],
          [t('skill.files'), files],
          [t('objects.size'), <Bytes key="size" value={size} />],
          [t('objects.changed'), <Time key="changed" at={changed} />],
          [t('skill.digest'), <code key="digest">{digest}</code>],
        ]}
      />
    </DetailCard>
  );
}
