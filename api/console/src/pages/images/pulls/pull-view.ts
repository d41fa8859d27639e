import type { Failure } from '../../../api/failure';
import { visibleText } from '../../../modules/visible-text';

/** A layer of an image that is being pulled. */
export interface PullLayer {
  id: string;
  /** The engine's word, such as `Downloading`. */
  status: string;
  current?: number;
  total?: number;
}

/** A pull as far as its stream was read. */
export interface PullView {
  /** Progress of the whole, 0 to 100. */
  percent: number;
  /** The newest sentence about the whole. */
  status: string;
  layers: PullLayer[];
  /** Result, once it has ended. */
  end?: { done: true } | { failure: Failure } | { error: string };
}

/** A pull of which nothing was read yet. */
export const UNREAD_PULL: PullView = { percent: 0, status: '', layers: [] };

interface PullEvent {
  status?: string;
  id?: string;
  error?: string;
  percent?: number;
  progressDetail?: { current?: number; total?: number };
}

/** Adds an event of the stream to what was read before. */
export function addPullEvent(view: PullView, data: string): PullView {
  const { status = '', id, error, percent = view.percent, progressDetail } = JSON.parse(data) as PullEvent;
  if (status === 'done') return { ...view, percent: 100, end: { done: true } };
  if (status === 'error') return { ...view, end: { error: visibleText(error ?? '') } };
  const whole = { ...view, percent: Math.max(view.percent, percent) };
  // The first event of the engine has the tag in place of a layer.
  if (id === undefined || status.startsWith('Pulling from')) return { ...whole, status: visibleText(status) };
  const layer = { id: visibleText(id), status: visibleText(status), ...progressDetail };
  const at = view.layers.findIndex((one) => one.id === layer.id);
  return { ...whole, layers: at < 0 ? [...view.layers, layer] : view.layers.with(at, layer) };
}

/** Share of a bar that a layer has when it is downloaded and not unpacked yet. */
const DOWNLOADED = 80;

/** Progress of a layer, 0 to 100, which never goes back: download first, then unpacking. */
export function layerPercent({ status, current = 0, total = 0 }: PullLayer): number {
  const share = total > 0 ? Math.min(1, current / total) : 0;
  switch (status) {
    case 'Downloading':
      return share * DOWNLOADED;
    case 'Verifying Checksum':
    case 'Download complete':
      return DOWNLOADED;
    case 'Extracting':
      return DOWNLOADED + share * (100 - DOWNLOADED);
    case 'Pull complete':
    case 'Already exists':
      return 100;
    default:
      return 0;
  }
}
