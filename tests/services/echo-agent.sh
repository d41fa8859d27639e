#!/bin/sh
# The agent of the tests. Behaves like a real one as far as the service can see: a home directory
# with a configuration file, a heartbeat, a health page, a debug switch, a prompt end on SIGTERM.
# It needs no capability and no particular user.
agent=$HOME/.agent
echo "echo ${ECHO_VERSION:-?} start $(date -u +%Y-%m-%dT%H:%M:%SZ) uid=$(id -u) gid=$(id -g)"
[ "${AGENT_DEBUG:-}" = 1 ] && echo "debug on"
if [ -r "$agent/config.json" ]; then
  echo "config: $(tr '\n' ' ' <"$agent/config.json")"
else
  echo "config: none"
fi
if [ "${ECHO_MODE:-}" = crash ]; then sleep 0.2; echo "crashing by image" >&2; exit 1; fi
if [ -e "$agent/crash" ]; then sleep 0.2; echo "crashing on demand" >&2; exit 3; fi

health=
client=
chat=
end() {
  echo "end"
  [ -z "$health" ] || kill "$health" 2>/dev/null
  [ -z "$client" ] || kill "$client" 2>/dev/null
  [ -z "$chat" ] || kill "$chat" 2>/dev/null
  exit 0
}
trap end TERM INT

if [ "${ECHO_MODE:-}" != deaf ]; then
  mkdir -p "$agent"
  httpd -f -p 18790 -h /srv &
  health=$!
fi
if [ -e /agent/client.mjs ] && [ -r "$agent/config.json" ]; then
  node /agent/client.mjs "$agent/config.json" &
  client=$!
fi
# It follows the agent's files, which may come later.
if [ -e /agent/chat.mjs ]; then
  node /agent/chat.mjs &
  chat=$!
fi
while :; do
  if [ "${ECHO_MODE:-}" != deaf ]; then
    date -u +%Y-%m-%dT%H:%M:%SZ >"$agent/heartbeat.new" && mv "$agent/heartbeat.new" "$agent/heartbeat"
  fi
  # A shell answers signals while it waits for a child, not while a child runs in front.
  sleep 1 &
  wait $!
done
