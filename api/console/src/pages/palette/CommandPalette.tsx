import { Button } from '@mantine/core';
import IconSearch from '@tabler/icons-react/icons/IconSearch';
import { lazy, type ReactNode, Suspense, useEffect, useState } from 'react';

import { useT } from '../../i18n';
import styles from './palette.module.css';

const PaletteDialog = lazy(async () => ({ default: (await import('./PaletteDialog')).PaletteDialog }));

/** Button of the command palette, which Ctrl-K opens as well. */
export function CommandPalette(): ReactNode {
  const t = useT();
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      const isK = event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey);
      if (!isK || event.altKey || event.shiftKey) return;
      event.preventDefault();
      setOpen(true);
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, []);
  return (
    <>
      <Button
        variant="subtle"
        color="gray"
        size="compact-md"
        leftSection={<IconSearch size={15} aria-hidden />}
        rightSection={<span className={styles.key}>{t('palette.key')}</span>}
        aria-keyshortcuts="Control+K"
        onClick={() => setOpen(true)}
      >
        {t('palette.button')}
      </Button>
      {open && (
        <Suspense>
          <PaletteDialog onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}
