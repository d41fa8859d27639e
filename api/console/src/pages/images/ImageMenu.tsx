import { ActionIcon, Menu } from '@mantine/core';
import IconDots from '@tabler/icons-react/icons/IconDots';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import type { ImageRow } from '../../api/queries/images';
import { useT } from '../../i18n';
import { shortImage } from '../../modules/image-name';
import styles from './images.module.css';
import type { Doomed } from './removal';

interface Props {
  image: ImageRow;
  onDelete: (doomed: Doomed) => void;
}

/** Actions on an image of the engine; each reference is deleted by itself, or all with the image. */
export function ImageMenu({ image, onDelete }: Props): ReactNode {
  const t = useT();
  const { repo_tags: tags, id } = image;
  const [first] = tags;
  const name = first === undefined ? id : shortImage(first);
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size={24} aria-label={t('images.actions', { name })}>
          <IconDots size={18} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {first !== undefined && (
          <>
            <Menu.Item
              renderRoot={(props) => <Link {...props} to="/admin/rollouts/new" search={{ image: first }} />}
            >
              {t('images.move')}
            </Menu.Item>
            <Menu.Divider />
          </>
        )}
        {tags.map((tag) => (
          <Menu.Item key={tag} className={styles.danger} onClick={() => onDelete({ name: tag, image })}>
            {t('images.delete', { name: shortImage(tag) })}
          </Menu.Item>
        ))}
        {tags.length !== 1 && (
          <Menu.Item className={styles.danger} onClick={() => onDelete({ name: image.full_id, image })}>
            {t(tags.length === 0 ? 'images.delete.id' : 'images.delete.all', { id })}
          </Menu.Item>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}
