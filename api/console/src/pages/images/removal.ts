import { Failure } from '../../api/failure';
import type { ImageRow } from '../../api/queries/images';
import { type ImageRemoval, previewRemoval } from '../../api/queries/rollout-preview';

/** Object of a deletion: a reference, or the image of an id with all its references. */
export interface Doomed {
  name: string;
  image: ImageRow;
}

/** Effect of the removal of an image, or the users who keep it from being done. */
export type Removal =
  | { isUsed: false; references: string[]; isForeign: boolean }
  | { isUsed: true; users: string[]; alternatives: string[] };

const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];

function readRemoval({ references }: ImageRemoval, isForeign: boolean): Removal {
  return { isUsed: false, references: references ?? [], isForeign };
}

/** Asks what the removal would do; an image of another repository is asked for once more, with that said. */
export async function askRemoval(image: string, signal: AbortSignal): Promise<Removal> {
  try {
    return readRemoval(await previewRemoval(image, false, signal), false);
  } catch (thrown) {
    if (!(thrown instanceof Failure)) throw thrown;
    if (thrown.code === 'not_managed') return askByForce(image, signal);
    return readRefusal(thrown);
  }
}

async function askByForce(image: string, signal: AbortSignal): Promise<Removal> {
  try {
    return readRemoval(await previewRemoval(image, true, signal), true);
  } catch (thrown) {
    return readRefusal(Failure.from(thrown));
  }
}

function readRefusal(failure: Failure): Removal {
  if (failure.code !== 'image_in_use') throw failure;
  const { users, alternatives } = failure.details;
  return { isUsed: true, users: texts(users), alternatives: texts(alternatives) };
}
