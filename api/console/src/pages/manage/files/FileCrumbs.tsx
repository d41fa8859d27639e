import { Link } from '@tanstack/react-router';
import { Fragment, type ReactNode } from 'react';

import { useT } from '../../../i18n';
import { visibleText } from '../../../modules/visible-text';
import styles from './files.module.css';
import { joinPath } from './paths';

interface Props {
  path: string;
  /** The last part is a link, too: it is a folder, and the page shows something else. */
  linkLast?: boolean;
}

/** The way from the top of the workspace to a folder. */
export function FileCrumbs({ path, linkLast = false }: Props): ReactNode {
  const t = useT();
  const names = path === '' ? [] : path.split('/');
  const steps = names.map((name, at) => ({ name, path: names.slice(0, at).reduce(joinPath, '') }));
  const all = [
    { name: t('files.top'), path: '' },
    ...steps.map((step) => ({ name: visibleText(step.name), path: joinPath(step.path, step.name) })),
  ];
  return (
    <nav aria-label={t('files.crumbs')} className={styles.crumbs}>
      {all.map((step, at) => (
        <Fragment key={step.path}>
          {at > 0 && <span aria-hidden> / </span>}
          {at < all.length - 1 || linkLast ? (
            <Link to="/manage/files" search={folderSearch(step.path)}>
              {step.name}
            </Link>
          ) : (
            <span aria-current="page">{step.name}</span>
          )}
        </Fragment>
      ))}
    </nav>
  );
}

/** Query of the address of a folder. */
function folderSearch(path: string): { path?: string } {
  return path === '' ? {} : { path };
}
