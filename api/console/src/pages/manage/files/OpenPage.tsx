import { useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { useT } from '../../../i18n';
import { visibleText } from '../../../modules/visible-text';
import { SubPage } from '../SubPage';
import { FileCrumbs } from './FileCrumbs';
import { NoPreview } from './NoPreview';
import { cleanPath, nameOf, parentOf } from './paths';
import { isBinary, pictureType } from './pictures';
import { PictureView } from './PictureView';
import { TextView } from './TextView';

/** A file of the workspace: a picture, a text in the editor, or its download. */
export function OpenPage(): ReactNode {
  const t = useT();
  const search: Record<string, unknown> = useSearch({ strict: false });
  const path = cleanPath(typeof search.path === 'string' ? search.path : '') ?? '';
  const name = nameOf(path);
  const view = (): ReactNode => {
    if (pictureType(name) !== undefined) return <PictureView key={path} path={path} />;
    return isBinary(name) ? <NoPreview path={path} /> : <TextView key={path} path={path} />;
  };
  return (
    <SubPage
      title={path === '' ? t('files.title') : visibleText(name)}
      text={<FileCrumbs path={parentOf(path)} linkLast />}
    >
      {view()}
    </SubPage>
  );
}
