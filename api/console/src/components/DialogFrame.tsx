import { Modal } from '@mantine/core';
import { type ReactNode, useEffect, useId } from 'react';

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

/** The open dialogs; the last one is in front. */
const open: string[] = [];

/** A dialog that keeps the page beneath from scrolling by a class, where Mantine would write a style element. */
export function DialogFrame({ opened, title, onClose, size = 440, children }: Props): ReactNode {
  const t = useT();
  const id = useId();
  useEffect(() => {
    if (!opened) return;
    open.push(id);
    const { classList, clientWidth } = document.documentElement;
    const [locked = '', gutter = ''] = [styles.locked, styles.gutter];
    // The place of a scroll bar stays, so that nothing jumps.
    if (innerWidth > clientWidth) classList.add(gutter);
    classList.add(locked);
    return () => {
      open.splice(open.indexOf(id), 1);
      if (open.length === 0) classList.remove(locked, gutter);
    };
  }, [opened, id]);
  // Escape reaches all dialogs, and means the one in front.
  const close = (): void => {
    if (open.at(-1) === id) onClose?.();
  };
  return (
    <Modal
      opened={opened}
      onClose={close}
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
