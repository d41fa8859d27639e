import { useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { post } from '../../api/client';
import type { Schemas } from '../../api/types';
import { ActionPreview } from '../../components/ActionPreview';
import { useToasts } from '../../components/toast-store';
import { useT } from '../../i18n';
import { shortImage } from '../../modules/image-name';
import { visibleText } from '../../modules/visible-text';
import styles from './images.module.css';
import { askRemoval, type Doomed, type Removal } from './removal';
import { UsedImage } from './UsedImage';

/** Dialog that says what goes with an image, or who has it and where those users could move. */
export function DeleteImage({ doomed, onClose }: { doomed: Doomed; onClose: () => void }): ReactNode {
  const t = useT();
  const toasts = useToasts();
  const client = useQueryClient();
  const { name, image } = doomed;
  const isWhole = name === image.full_id;
  const said = isWhole ? image.id : shortImage(name);
  const remove = async (removal: Removal): Promise<void> => {
    const force = !removal.isUsed && removal.isForeign;
    const answer = await post<Schemas['Converging']>('/api/admin/images/delete', { image: name, force });
    const key = answer.state === 'converged' ? 'images.deleted' : 'images.delete.requested';
    toasts.done(t(key, { name: said }));
    for (const queryKey of [
      ['list', 'image'],
      ['list', 'reconcile'],
    ])
      void client.invalidateQueries({ queryKey });
  };
  return (
    <ActionPreview<Removal>
      opened
      onClose={onClose}
      title={t('images.delete.title', { name: said })}
      previewKey={['delete-image', name]}
      preview={(signal) => askRemoval(name, signal)}
      verb={({ isUsed }) => (isUsed ? undefined : t('images.delete.verb', { name: said }))}
      danger
      act={remove}
    >
      {(removal) =>
        removal.isUsed ? (
          <UsedImage name={name} said={said} userCount={image.user_count} removal={removal} />
        ) : (
          <>
            <p>{t(isWhole ? 'images.delete.effect.all' : 'images.delete.effect')}</p>
            {removal.references.length > 0 && (
              <ul className={styles.list}>
                {removal.references.map((reference) => (
                  <li key={reference}>
                    <code>{visibleText(reference)}</code>
                  </li>
                ))}
              </ul>
            )}
            {removal.isForeign && <p>{t('images.delete.foreign')}</p>}
          </>
        )
      }
    </ActionPreview>
  );
}
