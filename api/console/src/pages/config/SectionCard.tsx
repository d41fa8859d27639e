import { Link } from '@tanstack/react-router';
import { type ReactNode, useId } from 'react';

import { useT } from '../../i18n';
import styles from './config.module.css';
import type { ShownSection } from './filter-settings';
import { SettingField } from './SettingField';
import { useSectionTitle } from './useSectionTitle';

interface Props {
  shown: ShownSection;
  /** Key of the setting that the address names. */
  chosen?: string;
}

/** A section with the fields of its settings. */
export function SectionCard({ shown: { section, settings }, chosen }: Props): ReactNode {
  const t = useT();
  const id = useId();
  const titleOf = useSectionTitle();
  return (
    <section className="card" aria-labelledby={id}>
      <h2 id={id}>{titleOf(section)}</h2>
      {section.id === 'agent' && (
        <p className={styles.note}>
          {t('config.agent.model')}{' '}
          <Link className={styles.textLink} to="/admin/agent">
            {t('config.agent.link')}
          </Link>
        </p>
      )}
      <div className={styles.fields}>
        {settings.map((setting) => (
          <SettingField key={setting.key} setting={setting} isChosen={setting.key === chosen} />
        ))}
      </div>
    </section>
  );
}
