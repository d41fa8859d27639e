import { Modal } from '@mantine/core';
import { type ReactNode, useEffect } from 'react';

import { useT } from '../i18n';
import styles from './dialog.module.css';

interface Props {
  opened: boolean;
  title: ReactNode;
  /** Absent for a dialog that cannot be left. */
  onClose?: () => void;
  size?: string | number;
  children: ReactNode;
}

let open = 0;

/** A dialog that keeps the page beneath from scrolling by a class, where Mantine would write a style element. */
export function DialogFrame({ opened, title, onClose, size = 440, children }: Props): ReactNode {
  const t = useT();
  useEffect(() => {
    if (!opened) return;
    open += 1;
    const { classList, clientWidth } = document.documentElement;
    const [locked = '', gutter = ''] = [styles.locked, styles.gutter];
    // The place of a scroll bar stays, so that nothing jumps.
    if (innerWidth > clientWidth) classList.add(gutter);
    classList.add(locked);
    return () => {
      open -= 1;
      if (open === 0) classList.remove(locked, gutter);
    };
  }, [opened]);
  return (
    <Modal
      opened={opened}
      onClose={onClose ?? (() => undefined)}
      title={title}
      size={size}
      withCloseButton={onClose !== undefined}
      closeOnClickOutside={onClose !== undefined}
      closeOnEscape={onClose !== undefined}
      closeButtonProps={{ 'aria-label': t('dialog.close') }}
      classNames={{
        title: styles.title,
        body: styles.body,
        content: styles.content,
        overlay: styles.overlay,
      }}
    >
      {children}
    </Modal>
  );
}
