import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { Failure } from '../../../api/failure';
import { textFileQuery } from '../../../api/queries/files';
import { ErrorState } from '../../../components/ErrorState';
import { LoadingState } from '../../../components/LoadingState';
import { NoPreview } from './NoPreview';
import { TextEditor } from './TextEditor';

/** A file that may be text: the server decides by its content. */
export function TextView({ path }: { path: string }): ReactNode {
  const { data, error, refetch } = useQuery(textFileQuery(path));
  if (error) {
    const failure = Failure.from(error);
    if (failure.status === 415) return <NoPreview path={path} />;
    return <ErrorState failure={failure} onRetry={() => void refetch()} />;
  }
  if (data === undefined) return <LoadingState rows={10} />;
  return <TextEditor key={path} file={data} />;
}
