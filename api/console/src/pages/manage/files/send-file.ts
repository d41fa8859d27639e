import { forgetCsrf, get, readCsrf } from '../../../api/client';
import { Failure } from '../../../api/failure';
import { ownUrl } from '../../../prefix';
import type { PlannedFile } from './upload-plan';

/** Options of sending a file. */
export interface SendOptions {
  overwrite: boolean;
  signal: AbortSignal;
  onProgress: (sent: number) => void;
}

/** Sends a file and reports its progress; signs in again and renews the CSRF token like every other request. */
export async function sendFile(planned: PlannedFile, options: SendOptions): Promise<void> {
  try {
    await attempt(planned, options);
  } catch (thrown) {
    const code = thrown instanceof Failure ? thrown.code : '';
    if (code !== 'csrf_invalid' && code !== 'not_signed_in') throw thrown;
    forgetCsrf();
    // This request waits until the user has signed in again.
    if (code === 'not_signed_in') await get('/api/user/info');
    await attempt(planned, options);
  }
}

async function attempt({ folder, name, file }: PlannedFile, options: SendOptions): Promise<void> {
  const { overwrite, signal, onProgress } = options;
  const token = await readCsrf({ signal });
  signal.throwIfAborted();
  const form = new FormData();
  form.append('path', folder);
  form.append('overwrite', String(overwrite));
  form.append('file', file, name);
  // Only XMLHttpRequest tells how much was sent.
  const request = new XMLHttpRequest();
  const abort = (): void => request.abort();
  signal.addEventListener('abort', abort);
  try {
    await new Promise<void>((resolve, reject) => {
      request.open('POST', ownUrl('/api/files/upload'));
      request.setRequestHeader('Accept', 'application/json');
      request.setRequestHeader('X-CSRF-Token', token);
      request.upload.onprogress = ({ loaded, total }) =>
        onProgress(total > 0 ? (loaded / total) * file.size : 0);
      request.onabort = () => reject(new DOMException('cancelled', 'AbortError'));
      request.onerror = () => reject(new Failure(0, 'network', ''));
      request.onload = () => {
        if (request.status >= 200 && request.status < 300) resolve();
        else void failureOf(request).then(reject);
      };
      request.send(form);
    });
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

function failureOf(request: XMLHttpRequest): Promise<Failure> {
  const headers = new Headers();
  for (const name of ['Retry-After', 'X-Request-Id']) {
    const value = request.getResponseHeader(name);
    if (value !== null) headers.set(name, value);
  }
  const { status, statusText, responseText } = request;
  return Failure.fromResponse(new Response(responseText, { status, statusText, headers }));
}
