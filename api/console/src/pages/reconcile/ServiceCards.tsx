import type { ReactNode } from 'react';

import type { Schemas } from '../../api/types';
import { DetailCard } from '../../components/DetailCard';
import { FactList } from '../../components/FactList';
import { TonePill } from '../../components/StatusPill';
import { useT } from '../../i18n';
import { ObjectLink } from '../../modules/objects/ObjectLink';
import { visibleText } from '../../modules/visible-text';
import { PartList } from './PartList';
import styles from './reconcile.module.css';

/** Names the leader, the engine, and the parts of the service with their health. */
export function ServiceCards({ overview }: { overview: Schemas['Overview'] }): ReactNode {
  const t = useT();
  const { leader, engine, health } = overview;
  return (
    <div className={styles.service}>
      <DetailCard title={t('reconcile.service')}>
        <FactList
          facts={[
            [
              t('reconcile.leader'),
              leader.holder ? (
                <>
                  <code>{visibleText(leader.holder)}</code>{' '}
                  <small>{t(leader.leading ? 'reconcile.leader.this' : 'reconcile.leader.other')}</small>
                </>
              ) : (
                <TonePill tone="warn">{t('reconcile.leader.none')}</TonePill>
              ),
            ],
            [
              t('reconcile.engine'),
              <>
                <TonePill tone={engine.available ? 'ok' : 'bad'}>
                  {t(engine.available ? 'reconcile.engine.there' : 'reconcile.engine.away')}
                </TonePill>{' '}
                <span lang="en">{visibleText(engine.message)}</span>
                <div>
                  <ObjectLink object="engine/local" />
                </div>
              </>,
            ],
          ]}
        />
      </DetailCard>
      <DetailCard title={t('reconcile.parts')}>
        <PartList parts={health} />
      </DetailCard>
    </div>
  );
}
