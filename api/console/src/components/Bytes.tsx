import type { ReactNode } from 'react';

import { useTranslation } from '../i18n';
import { byteSize } from '../i18n/values';

/** A number of bytes as a size. */
export function Bytes({ value }: { value: number }): ReactNode {
  const { language } = useTranslation();
  return <span className="nowrap">{byteSize(value, language)}</span>;
}
