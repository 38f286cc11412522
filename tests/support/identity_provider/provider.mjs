// A real OpenID Connect provider for tests. Its settings come as JSON on standard input; it ends
// with its input. `accounts` is a file that is read at every sign-in, so that groups can change.
import { readFileSync } from 'node:fs';
import { Provider } from 'oidc-provider';

const settings = JSON.parse(await new Promise((resolve) => {
  process.stdin.setEncoding('utf8').once('data', resolve);
}));
process.stdin.on('end', () => process.exit(0));

const provider = new Provider(settings.issuer, {
  clients: settings.clients,
  jwks: { keys: settings.keys },
  cookies: { keys: [settings.secret] },
  features: { deviceFlow: { enabled: true }, devInteractions: { enabled: true } },
  pkce: { required: () => true },
  scopes: ['openid', 'offline_access', 'email', 'profile'],
  claims: { openid: ['sub', 'groups'], email: ['email', 'email_verified'] },
  conformIdTokenClaims: false,
  ttl: {
    IdToken: () => settings.idTokenSeconds, AccessToken: () => 600, DeviceCode: () => 600,
    Session: () => 600, Interaction: () => 600, Grant: () => 600, RefreshToken: () => 600,
  },
  issueRefreshToken: async (ctx, client) => client.grantTypeAllowed('refresh_token'),
  findAccount: async (ctx, sub) => {
    const groups = JSON.parse(readFileSync(settings.accounts, 'utf8'))[sub];
    if (groups === undefined) return undefined;
    const email = `${sub}@example.org`;
    return {
      accountId: sub,
      claims: async () => ({ sub, groups, email, email_verified: true }),
    };
  },
  loadExistingGrant: async (ctx) => {
    const { client, session } = ctx.oidc;
    const grant = new ctx.oidc.provider.Grant({ clientId: client.clientId, accountId: session.accountId });
    grant.addOIDCScope('openid offline_access email profile');
    await grant.save();
    return grant;
  },
});

provider.listen(settings.port, '127.0.0.1', () => process.stdout.write('ready\n'));
