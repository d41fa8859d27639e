import { ownUrl } from '../prefix';
import { noteAccount, shownAccount } from './account';
import { Failure } from './failure';
import { renewSession } from './session';

/** Fields of a query or of a body; what is undefined is left out. */
export type Fields = Record<string, unknown>;

/** Options of a request. */
export interface RequestOptions {
  signal?: AbortSignal;
  /** Answers 401 to the caller instead of asking the user to sign in again. */
  keepUnauthorized?: boolean;
  /** Sends no CSRF token: there is no session yet. */
  noCsrf?: boolean;
  /** Further headers, such as `Accept`. */
  headers?: Record<string, string>;
}

let csrfToken: string | undefined;

/** Forgets the CSRF token: it belongs to the session that ended. */
export function forgetCsrf(): void {
  csrfToken = undefined;
}

/** Reads a resource: `get('/api/user/info')`. */
export async function get<T>(path: string, query: Fields = {}, options: RequestOptions = {}): Promise<T> {
  const address = ownUrl(path) + queryText(query);
  const response = await send(() => request(address, { method: 'GET' }, options), options);
  return (await response.json()) as T;
}

/** Reads a resource that is no JSON, such as a file or an event stream, as its response. */
export async function getRaw(
  path: string,
  query: Fields = {},
  options: RequestOptions & { accept?: string } = {},
): Promise<Response> {
  const address = ownUrl(path) + queryText(query);
  const headers = { Accept: options.accept ?? '*/*' };
  return send(() => request(address, { method: 'GET', headers }, options), options);
}

/** Writes: `post('/api/admin/users/delete', { username })`. Sends the CSRF token, renewed once when it is too old. */
export async function post<T>(path: string, body: Fields = {}, options: RequestOptions = {}): Promise<T> {
  return (await (await postRaw(path, body, options)).json()) as T;
}

/** Writes and returns the answer itself, whose status tells 200 (done) from 202 (under way). */
export async function postRaw(
  path: string,
  body: Fields | FormData,
  options: RequestOptions = {},
): Promise<Response> {
  const attempt = async (): Promise<Response> => {
    const headers: Record<string, string> = { ...options.headers };
    if (options.noCsrf !== true) headers['X-CSRF-Token'] = await readCsrf(options);
    const form = body instanceof FormData;
    if (!form) headers['Content-Type'] = 'application/json';
    const content = form ? body : JSON.stringify(body);
    return request(ownUrl(path), { method: 'POST', headers, body: content }, options);
  };
  return send(async () => {
    try {
      return await attempt();
    } catch (thrown) {
      if (!(thrown instanceof Failure) || thrown.code !== 'csrf_invalid' || csrfToken === undefined)
        throw thrown;
      forgetCsrf();
      return attempt();
    }
  }, options);
}

/** Returns the CSRF token, for requests that are not made here, such as uploads with progress. */
export async function readCsrf(options: RequestOptions = {}): Promise<string> {
  if (csrfToken === undefined) {
    const response = await request(ownUrl('/api/csrf'), { method: 'GET' }, options);
    const { csrf_token } = (await response.json()) as { csrf_token: string };
    await requireAccount(options);
    csrfToken = csrf_token;
  }
  return csrfToken;
}

/** Throws when another account has signed in: its session must not send what was typed on this page. */
async function requireAccount(options: RequestOptions): Promise<void> {
  if (shownAccount() === undefined) return;
  const response = await request(ownUrl('/api/user/info'), { method: 'GET' }, options);
  const { username } = (await response.json()) as { username: string };
  if (!noteAccount(username)) throw new Failure(0, 'account_changed', '');
}

/** Makes a request; when the session has ended, it waits until the user has signed in again. */
async function send(attempt: () => Promise<Response>, options: RequestOptions): Promise<Response> {
  try {
    return await attempt();
  } catch (thrown) {
    const ended = thrown instanceof Failure && thrown.status === 401 && thrown.code === 'not_signed_in';
    if (!ended || options.keepUnauthorized === true) throw thrown;
    forgetCsrf();
    await renewSession(thrown, options.signal);
    return attempt();
  }
}

async function request(address: string, init: RequestInit, options: RequestOptions): Promise<Response> {
  let response: Response;
  const headers = { Accept: 'application/json', ...(init.headers as Record<string, string> | undefined) };
  try {
    response = await fetch(address, { ...init, headers, credentials: 'same-origin', signal: options.signal });
  } catch (thrown) {
    if (options.signal?.aborted === true) throw thrown;
    throw Failure.from(thrown);
  }
  if (!response.ok) throw await Failure.fromResponse(response);
  return response;
}

/** Writes fields as a query; lists become repeated fields. */
export function queryText(query: Fields): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? (value as unknown[]) : [value]) {
      if (one !== undefined && one !== null && one !== '') search.append(name, String(one));
    }
  }
  const text = search.toString();
  return text === '' ? '' : `?${text}`;
}
