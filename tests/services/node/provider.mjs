// An OpenID provider with people who have passwords: `oidc-provider`, which is certified, with a sign-in page of its own.
// usage: PORT=… REDIRECT=… PEOPLE='{"alice":{"password":"…","groups":["dev"]}}' node provider.mjs
// A restart is a new set of keys, and forgets who is signed in. Prints "ready" once it serves.
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { Provider } from 'oidc-provider';

const { PORT, REDIRECT, PEOPLE } = process.env;
const issuer = `http://127.0.0.1:${PORT}`;
const people = JSON.parse(PEOPLE);
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const key = { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: 'RS256' };

const provider = new Provider(issuer, {
  jwks: { keys: [key] },
  clients: [{
    client_id: 'yard',
    client_secret: 'a secret & more',
    redirect_uris: [REDIRECT],
    response_types: ['code'],
    grant_types: ['authorization_code'],
  }],
  // Whoever redeems a code without having asked for it gets nothing.
  pkce: { required: () => true },
  claims: { openid: ['sub'], profile: ['name', 'preferred_username', 'groups'], email: ['email', 'email_verified'] },
  features: { devInteractions: { enabled: false } },
  interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
  cookies: { keys: [randomUUID()] },
  ttl: { AccessToken: 600, IdToken: 600, Session: 3600, Grant: 3600, Interaction: 600 },
  async findAccount(ctx, id) {
    const { password, ...claims } = people[id];
    return { accountId: id, claims: () => ({ sub: `subject-of-${id}`, preferred_username: id, ...claims }) };
  },
  // Nobody is asked for consent.
  async loadExistingGrant(ctx) {
    const { client, session } = ctx.oidc;
    const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
    grant.addOIDCScope('openid profile email');
    await grant.save();
    return grant;
  },
});

const page = (said) => `<!doctype html><title>Sign in</title><form method="post">
<p id="said">${said}</p><input name="name"><input name="password" type="password">
<button name="do" value="sign-in">Sign in</button><button name="do" value="cancel">Cancel</button></form>`;

async function body(request) {
  let text = '';
  for await (const piece of request) text += piece;
  return new URLSearchParams(text);
}

provider.use(async (ctx, next) => {
  if (!ctx.path.startsWith('/interaction/')) return next();
  await provider.interactionDetails(ctx.req, ctx.res);
  ctx.type = 'html';
  ctx.body = page('');
  if (ctx.method !== 'POST') return;
  const form = await body(ctx.req);
  if (form.get('do') === 'cancel') {
    const result = { error: 'access_denied', error_description: 'End-User aborted interaction' };
    ctx.respond = false;
    return provider.interactionFinished(ctx.req, ctx.res, result);
  }
  const name = form.get('name');
  if (!Object.hasOwn(people, name) || people[name].password !== form.get('password')) {
    ctx.body = page('Wrong name or password');
    return;
  }
  ctx.respond = false;
  await provider.interactionFinished(ctx.req, ctx.res, { login: { accountId: name } });
});

provider.listen(Number(PORT), '127.0.0.1', () => console.log('ready'));
