import type { SignedIn } from '../api/types';
import { ownPath, ownUrl } from '../prefix';

/** The page that a signed-in account is sent to. */
export function destination(account: SignedIn, search: string): string {
  const next = ownPath(new URLSearchParams(search).get('next'));
  if (account.role === 'superadmin') return ownUrl(next ?? '/admin/dashboard');
  if (account.initializing) return ownUrl('/initializing');
  return ownUrl(next ?? '/manage');
}

/** The address where a sign-in with an identity provider begins. */
export function providerUrl(search: string): string {
  const next = ownPath(new URLSearchParams(search).get('next'));
  return ownUrl(`/api/login/oidc${next === undefined ? '' : `?next=${encodeURIComponent(ownUrl(next))}`}`);
}
