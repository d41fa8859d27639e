import { Progress } from '@mantine/core';
import type { ReactNode } from 'react';

import { Bytes } from '../../../components/Bytes';
import { type MessageKey, Rich, useT } from '../../../i18n';
import styles from '../images.module.css';
import { layerPercent, type PullLayer } from './pull-view';

const WORDS: Record<string, MessageKey> = {
  'Pulling fs layer': 'pull.layer.waiting',
  Waiting: 'pull.layer.waiting',
  Downloading: 'pull.layer.downloading',
  'Verifying Checksum': 'pull.layer.checking',
  'Download complete': 'pull.layer.downloaded',
  Extracting: 'pull.layer.unpacking',
  'Pull complete': 'pull.layer.done',
  'Already exists': 'pull.layer.there',
};

/** A bar for each layer of an image that is being pulled. */
export function PullLayers({ image, layers }: { image: string; layers: PullLayer[] }): ReactNode {
  const t = useT();
  const done = layers.filter((layer) => layerPercent(layer) === 100).length;
  return (
    <details open className={styles.layers}>
      <summary>{t('pull.layers', { done, total: layers.length })}</summary>
      <ul aria-label={t('pull.layers.of', { image })}>
        {layers.map((layer) => {
          const { id, status, current, total } = layer;
          const key = WORDS[status];
          const moves = status === 'Downloading' && current !== undefined && total !== undefined;
          return (
            <li key={id}>
              <code>{id}</code>
              <Progress size="sm" value={layerPercent(layer)} aria-label={t('pull.layer', { id })} />
              <small>
                {key === undefined ? <span lang="en">{status}</span> : t(key)}
                {moves && ' '}
                {moves && (
                  <Rich
                    k="pull.bytes"
                    values={{
                      done: <Bytes key="done" value={current} />,
                      total: <Bytes key="total" value={total} />,
                    }}
                  />
                )}
              </small>
            </li>
          );
        })}
      </ul>
    </details>
  );
}
