import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useCallback, useState } from 'react';

import { getRaw } from '../../../api/client';
import { Failure } from '../../../api/failure';
import { ErrorState } from '../../../components/ErrorState';
import { LoadingState } from '../../../components/LoadingState';
import { visibleText } from '../../../modules/visible-text';
import styles from './files.module.css';
import { NoPreview } from './NoPreview';
import { nameOf } from './paths';
import { pictureType } from './pictures';

/** A picture of the workspace. */
export function PictureView({ path }: { path: string }): ReactNode {
  const name = nameOf(path);
  const { data, error, refetch } = useQuery({
    queryKey: ['files', 'picture', path],
    queryFn: async ({ signal }) => {
      const response = await getRaw('/api/files/download', { path }, { signal });
      return new Blob([await response.arrayBuffer()], { type: pictureType(name) });
    },
    gcTime: 0,
  });
  const [broken, setBroken] = useState(false);
  const show = useCallback(
    (image: HTMLImageElement | null) => {
      if (image === null || data === undefined) return;
      const url = URL.createObjectURL(data);
      image.src = url;
      return () => URL.revokeObjectURL(url);
    },
    [data],
  );
  if (error) return <ErrorState failure={Failure.from(error)} onRetry={() => void refetch()} />;
  if (broken) return <NoPreview path={path} />;
  if (data === undefined) return <LoadingState rows={6} />;
  return (
    <div className="card">
      <img ref={show} alt={visibleText(name)} className={styles.picture} onError={() => setBroken(true)} />
    </div>
  );
}
