import { Button } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import type { ReactNode } from 'react';

import { post } from '../../api/client';
import { Failure } from '../../api/failure';
import type { Schemas } from '../../api/types';
import { ErrorState } from '../../components/ErrorState';
import { type Step, Steps } from '../../components/Steps';
import { useT } from '../../i18n';
import { visibleText } from '../../modules/visible-text';
import styles from './auth.module.css';

type Result = Schemas['ProviderCheck'] & Partial<Schemas['DirectoryCheck']>;

/** Button that tests the stored settings of a directory or an identity provider, and the steps of the test. */
export function TestConnection({ provider }: { provider: string }): ReactNode {
  const t = useT();
  const { data, error, isPending, mutate } = useMutation({
    mutationFn: () => post<Result>(`/api/admin/auth/test-${provider}`),
  });
  const steps = (data?.steps ?? []).map(({ name, detail, ms, ok }): Step => ({
    text: `${visibleText(name)}: ${visibleText(detail)} (${String(ms)} ms)`,
    lang: 'en',
    state: ok ? 'done' : 'failed',
  }));
  return (
    <div className={styles.test}>
      <Button disabled={isPending} onClick={() => mutate()}>
        {isPending ? t('auth.testing') : t('auth.test')}
      </Button>
      {error && <ErrorState title={t('auth.test.failed')} failure={Failure.from(error)} />}
      {data && (
        <div role="status">
          <p>{t(steps.every(({ state }) => state === 'done') ? 'auth.test.works' : 'auth.test.broken')}</p>
          <Steps steps={steps} />
          {data.user_count !== undefined && (
            <small>
              {t('auth.test.users', { count: data.user_count, groups: data.groups?.length ?? 0 })}{' '}
              {(data.users ?? []).slice(0, 10).map(visibleText).join(', ')}
            </small>
          )}
        </div>
      )}
    </div>
  );
}
