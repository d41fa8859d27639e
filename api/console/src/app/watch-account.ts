import { onOwnAccount } from '../api/account';
import { readSession } from '../api/queries/session';
import { sessionHasEnded, sessionRenewed } from '../api/session';
import { forgetDrafts } from '../modules/drafts';
import { ownUrl } from '../prefix';

/** A tab that is shown asks at most this often whose session it is. */
const GAP = 30_000;

let askedAt = 0;

/** Keeps the tab to its account: follows sign-ins and sign-outs of other tabs. */
export function watchAccount(): void {
  onOwnAccount((message) => {
    if ('signedIn' in message) {
      if (sessionHasEnded()) sessionRenewed();
      return;
    }
    forgetDrafts();
    location.replace(ownUrl('/login'));
  });
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden && Date.now() - askedAt > GAP) askAgain();
  });
  addEventListener('pageshow', (event) => {
    if (event.persisted) askAgain();
  });
}

function askAgain(): void {
  askedAt = Date.now();
  readSession({ keepUnauthorized: true }).then(
    () => {
      if (sessionHasEnded()) sessionRenewed();
    },
    // The next request of the page says what is wrong.
    () => undefined,
  );
}
