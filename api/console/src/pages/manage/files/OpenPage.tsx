import { useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';

import { useT } from '../../../i18n';
import { visibleText } from '../../../modules/visible-text';
import { SubPage } from '../SubPage';
import { FileCrumbs } from './FileCrumbs';
import { cleanPath, nameOf, parentOf } from './paths';
import { pictureType } from './pictures';
import { PictureView } from './PictureView';
import { TextView } from './TextView';

/** A file of the workspace: a picture, a text in the editor, or its download. */
export function OpenPage(): ReactNode {
  const t = useT();
  const search: Record<string, unknown> = useSearch({ strict: false });
  const path = cleanPath(typeof search.path === 'string' ? search.path : '') ?? '';
  const picture = pictureType(nameOf(path)) !== undefined;
  return (
    <SubPage
      title={path === '' ? t('files.title') : visibleText(nameOf(path))}
      text={<FileCrumbs path={parentOf(path)} linkLast />}
    >
      {picture ? <PictureView key={path} path={path} /> : <TextView key={path} path={path} />}
    </SubPage>
  );
}
