import type { ReactNode } from 'react';

import { useT } from '../../i18n';
import { visibleText } from '../../modules/visible-text';
import type { ChangedValue } from './changed-values';
import styles from './config.module.css';
import { isSecretLeaf, type LeafChange, leafChanges } from './leaf-changes';
import { isSecretText } from './read-entry';
import { isEmptyValue } from './value-line';
import { ValueText } from './ValueText';

/** A value before and after. */
function OldNew({ before, after, usual }: { before: unknown; after: unknown; usual?: unknown }): ReactNode {
  const t = useT();
  return (
    <span className={styles.oldNew}>
      <ValueText value={before} usual={usual} />
      <span>
        <span aria-hidden>→</span>
        <span className="visually-hidden">{t('config.becomes')}</span>
      </span>
      <ValueText value={after} usual={usual} />
    </span>
  );
}

/** Change of a secret, which is never shown. */
function SecretChange({ before, after }: { before: unknown; after: unknown }): ReactNode {
  const t = useT();
  if (isEmptyValue(after)) return t('config.secret.removed');
  return t(isEmptyValue(before) ? 'config.secret.set' : 'config.secret.replaced');
}

/** A leaf of a document. */
function Leaf({ leaf, isSecret }: { leaf: LeafChange; isSecret: boolean }): ReactNode {
  return (
    <li>
      <code>{visibleText(leaf.path)}</code>{' '}
      {isSecret || isSecretLeaf(leaf) ? <SecretChange {...leaf} /> : <OldNew {...leaf} />}
    </li>
  );
}

/** A changed setting: its title, its key, and its value before and after; of a document the changed leaves. */
export function ChangedRow({ change }: { change: ChangedValue }): ReactNode {
  const t = useT();
  const { key, setting, before, after } = change;
  const leaves =
    setting?.type === 'object' && after !== undefined
      ? leafChanges(before ?? setting.default, after ?? setting.default)
      : undefined;
  return (
    <li>
      <div>
        {setting && (
          <span lang={setting.isForeign ? 'en' : undefined} className={styles.changedTitle}>
            {setting.title}
          </span>
        )}{' '}
        <code>{visibleText(key)}</code>
      </div>
      <div className={styles.changedValue}>
        {after === undefined && t('config.value.unknown')}
        {after !== undefined && setting && isSecretText(setting) && (
          <SecretChange before={before} after={after} />
        )}
        {after !== undefined && leaves === undefined && !(setting && isSecretText(setting)) && (
          <OldNew before={before} after={after} usual={setting?.default} />
        )}
        {leaves !== undefined && (
          <ul className={styles.leaves}>
            {leaves.map((leaf) => (
              <Leaf key={leaf.path} leaf={leaf} isSecret={setting?.isSecret === true} />
            ))}
          </ul>
        )}
      </div>
    </li>
  );
}
