import type { SettingGroup, SettingTexts } from '../../modules/settings';

/** Each setting's title, and its meaning in a sentence. */
export const settings: SettingTexts = {
  'adapter.allow_http': [
    'Adapter source over plain HTTP',
    'Allows a source of adapter packages without TLS.',
  ],
  'adapter.auto_activate': [
    'Automatic adapter activation',
    'Activates a newer adapter as soon as the source has one.',
  ],
  'adapter.redirect_hosts': ['Adapter source redirects', 'Other hosts to which the source may redirect.'],
  'adapter.refresh_interval': [
    'Adapter refresh interval',
    'Time between checks for a newer adapter; 0 never checks.',
  ],
  'adapter.source_url': [
    'Adapter source',
    'URL that newer adapter packages come from; it must not contain a secret.',
  ],
  agent: ['Agent configuration', 'Merged into the configuration file of every agent; replaced as a whole.'],
  'archive.retention': [
    'Archive retention',
    'Time for which files of deleted users are kept; 0 keeps them for ever.',
  ],
  'audit.retention': ['Audit retention', 'Time for which audit entries are kept; 0 keeps them for ever.'],
  'backup.directory': [
    'Backup directory',
    'Directory on the server for scheduled backups; it must exist. Empty makes none.',
  ],
  'backup.every': ['Backup interval', 'Time between scheduled backups.'],
  'backup.keep': ['Backups kept', 'Number of backups that are kept; 0 keeps all.'],
  'backup.keep_days': ['Backup age (days)', 'Days for which backups are kept; 0 keeps them for ever.'],
  'chat.enabled': [
    'Chat',
    'Users talk to their agents on the page; the channel that it occupies is not offered then.',
  ],
  'container.autostart': ['Start new containers', 'Starts the container of a new user at once.'],
  'container.capabilities': ['Capabilities', 'Linux capabilities that agents keep; all others are dropped.'],
  'container.cpu_limit': ['CPU limit', 'CPU cores for each container, such as 0.5; 0 sets no limit.'],
  'container.health_timeout': [
    'Time to become ready',
    'An agent that needs longer after a change pauses the rollout of the change.',
  ],
  'container.host_access': [
    'Host access',
    'What agents reach of the host: only this service (service, enforce), or all open services (open).',
  ],
  'container.lan_access': [
    'Network access',
    'Networks behind the host that agents reach: private ones, none, or those listed.',
  ],
  'container.max_unavailable': [
    'Agents changed at once',
    'Agents that get a changed configuration or adapter at the same time.',
  ],
  'container.memory_limit_mb': ['Memory limit (MiB)', 'Memory for each container.'],
  'container.min_ready': [
    'Ready time of replacements',
    'A new container must be ready for this long before the previous one is removed.',
  ],
  'container.network_subnet': [
    'Agent network',
    'Private network of the containers; it cannot change while there are any.',
  ],
  'container.pids_limit': ['Process limit', 'Processes and threads for each container.'],
  'container.probe_failures': [
    'Failed checks before a restart',
    'Checks in a row without an answer after which an agent is restarted.',
  ],
  'container.probe_interval': ['Check interval', 'Time between checks of a ready agent; 0 never checks.'],
  'container.service_url': [
    'Service URL for agents',
    'Base URL that agents reach this service by; empty is where it listens for them.',
  ],
  'container.timezone': [
    'Time zone',
    'Time zone in containers, such as Europe/Berlin; empty is that of the image.',
  ],
  'events.retention': ['Event retention', 'Time for which events are kept; 0 keeps them for ever.'],
  'files.quota_action': [
    'Action at the quota',
    'Refuses uploads and warns (warn), or stops the agent as well (stop).',
  ],
  'files.quota_files': [
    'File quota',
    'Files and folders for each user, with those of the agent; 0 sets no limit.',
  ],
  'files.quota_mb': [
    'Space quota (MiB)',
    'Space for the files of each user, with those of the agent; 0 sets no limit.',
  ],
  'image.name': ['Image', 'Agent image of new users, without its tag.'],
  'image.pull_policy': ['Pull policy', 'Pulls the image when it is missing (missing), always or never.'],
  'image.registry_password': ['Registry password', 'Password for the registry of the image.'],
  'image.registry_plain_http': [
    'Registries without TLS',
    'Registries whose tags are listed over plain HTTP; pulls follow the engine.',
  ],
  'image.registry_username': [
    'Registry user name',
    'User name for the registry of the image; empty is anonymous.',
  ],
  'image.tag': ['Image tag', 'Tag of the agent image of new users.'],
  'ldap.base_dn': ['Search base', 'DN below which users are searched.'],
  'ldap.bind_dn': ['Bind DN', 'DN that the service signs in to the directory with.'],
  'ldap.bind_password': ['Bind password', 'Password of the bind DN.'],
  'ldap.ca_certificate': [
    'Directory CA certificate',
    'CA certificates (PEM) trusted for the directory besides those of the system.',
  ],
  'ldap.filter': ['User filter', 'Filter that finds a user; {{username}} stands for the name.'],
  'ldap.group_base_dn': [
    'Group search base',
    'DN below which groups are searched; with member_of, what users name elsewhere is no group.',
  ],
  'ldap.group_filter': ['Group filter', 'Filter that finds a group; {{groupname}} stands for the name.'],
  'ldap.group_member_attribute': ['Group member attribute', 'Attribute of a group that lists its members.'],
  'ldap.group_search_mode': [
    'Group search mode',
    'Reads groups from the users (member_of) or members from the groups (group_search).',
  ],
  'ldap.host': ['Directory server', 'Server as host:port, ldap://host or ldaps://host.'],
  'ldap.id_attribute': [
    'Identity attribute',
    'Identifies an entry for good, so that a renamed user keeps the account: auto, none, or an attribute.',
  ],
  'ldap.max_message_mb': ['Longest message (MiB)', 'Longest message of the directory that is accepted.'],
  'ldap.max_removal_percent': [
    'Largest removal (%)',
    'A synchronisation that removes a greater share of the users waits for confirmation.',
  ],
  'ldap.page_size': ['Page size', 'Entries requested from the directory at a time.'],
  'ldap.removal_grace': [
    'Removal grace period',
    'Time for which a user must be missing before removal; 0 removes at once.',
  ],
  'ldap.start_tls': ['StartTLS', 'Upgrades plain connections to TLS.'],
  'ldap.sync_interval': [
    'Synchronisation interval',
    'Time between synchronisations of users and groups; 0 is only on request.',
  ],
  'ldap.timeout': ['Directory timeout', 'Longest duration of one request to the directory.'],
  'ldap.username_attribute': ['User name attribute', 'Attribute that holds the user name.'],
  'ldap.whitelist_enabled': ['Whitelist for directory users', 'Lets only users on the whitelist sign in.'],
  'log.level': ['Log level', 'Least severe level that is logged; the variable RUST_LOG takes precedence.'],
  'mcp.get_stream': [
    'GET on the MCP endpoint',
    'Opens an event stream (stream), or is refused with status 405 (refuse).',
  ],
  'mcp.policy': ['MCP policy', 'What agents may do with browsers and desktops, by user and group.'],
  'mcp.session_strict': ['Strict MCP sessions', 'Refuses session ids that this service has not issued.'],
  'oidc.ca_certificate': [
    'Provider CA certificate',
    'CA certificates (PEM) trusted for the provider besides those of the system.',
  ],
  'oidc.client_id': ['Client id', 'Id of this service at the identity provider.'],
  'oidc.client_secret': [
    'Client secret',
    'Secret of this service at the identity provider; empty for a public client.',
  ],
  'oidc.display_name': ['Display name', 'Name of the identity provider on the sign-in page.'],
  'oidc.groups_claim': [
    'Groups claim',
    'Claim that lists the groups of the user; without it they stay as they are.',
  ],
  'oidc.provider_url': ['Issuer URL', 'Issuer of the identity provider, exactly as the provider writes it.'],
  'oidc.redirect_url': ['Redirect URL', 'Callback of this service; ends with /api/login/oidc/callback.'],
  'oidc.scopes': ['Scopes', 'Scopes requested from the identity provider.'],
  'oidc.username_claim': ['User name claim', 'Claim that holds the user name; read at the first sign-in.'],
  'oidc.whitelist_enabled': ['Whitelist for provider users', 'Lets only users on the whitelist sign in.'],
  security: ['Agent secrets', 'Merged into the security file of every agent; replaced as a whole.'],
  'skills.allow_private_hosts': [
    'Repositories on private hosts',
    'Allows skill repositories on private and loopback addresses.',
  ],
  'skills.defaults': ['Default skills', 'Skills that every user gets.'],
  'web.allowed_origins': ['Allowed origins', 'Origins of other pages that may call the API.'],
  'web.auth_mode': [
    'Authentication mode',
    'Where users come from; a change removes all users and archives their files.',
  ],
  'web.desktop_user_agents': [
    'Desktop clients',
    'Parts of the User-Agent of desktop clients, in which administrators cannot sign in.',
  ],
  'web.public_url': [
    'Public URL',
    'Base URL that browsers reach this service by; empty takes it from the request.',
  ],
  'web.trusted_proxies': ['Trusted proxies', 'Addresses and networks whose X-Forwarded headers are trusted.'],
};

/** Titles of groups of settings. */
export const settingGroups: Record<SettingGroup, string> = {
  adapter: 'Adapter',
  agent: 'Agent',
  archive: 'Archives',
  audit: 'Audit',
  backup: 'Backups',
  chat: 'Chat',
  container: 'Containers',
  events: 'Events',
  files: 'Files',
  image: 'Image',
  ldap: 'Directory (LDAP)',
  log: 'Log',
  mcp: 'MCP',
  oidc: 'Identity provider (OpenID Connect)',
  security: 'Secrets',
  skills: 'Skills',
  web: 'Web & sign-in',
};
