import { useMemo } from 'react';

import { useT } from '../../../i18n';

/** Words of the editor's own panels in the page's language. */
export function usePhrases(): Record<string, string> {
  const t = useT();
  return useMemo(
    () => ({
      Find: t('editor.find'),
      Replace: t('editor.replace'),
      next: t('editor.next'),
      previous: t('editor.previous'),
      all: t('editor.all'),
      'match case': t('editor.case'),
      regexp: t('editor.regexp'),
      'by word': t('editor.word'),
      replace: t('editor.replace.one'),
      'replace all': t('editor.replace.all'),
      close: t('dialog.close'),
      'Go to line': t('editor.line'),
      go: t('editor.go'),
      '$ unchanged lines': t('editor.unchanged', { count: '$' }),
    }),
    [t],
  );
}
