# Shared by the scripts in this folder; sourced by bash, never run.
#
# A set of services lives under one directory (AGENTYARD_SERVICES_DIR, default <repository>/.services/1) and
# in one network namespace bound to a file there, so an engine, a bridge, firewall rules or a
# database that the machine already has are never touched.

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)
services=${AGENTYARD_SERVICES_DIR:-$repository/.services/1}
case $services in /*) ;; *) services=$PWD/$services ;; esac

# Sets that run side by side: `max-threads` of the group `engine` in .config/nextest.toml.
service_sets=3
echo_images=(echo:1 echo:2 echo:crash echo:deaf echo:mcp echo:chat)

netns=$services/netns
docker_dir=$services/docker
docker_socket=$docker_dir/docker.sock
docker_pidfile=$docker_dir/dockerd.pid
docker_host=unix://$docker_socket
postgres_port=5432
postgres_user=app
postgres_password=pw
registry_dir=$services/registry
registry_port=15000
registry_auth_port=15001
registry_user=app
registry_password=pw

say() { printf '%s\n' "$*" >&2; }
fail() { say "services: $*"; exit 1; }

need_root() {
  [ "$(id -u)" = 0 ] || fail "a container engine needs root: run this as root, for example with sudo"
}

# alive PID TEXT: the process exists, is no zombie, and TEXT is in its command line. A pid that was
# given to another process after a reboot does not pass.
alive() {
  [ -n "$1" ] && [ -r "/proc/$1/cmdline" ] && tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null | grep -qF -- "$2"
}

zombie() { grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2>/dev/null; }

# wait_gone PID…: until no such process is left. A killed process stays as a zombie until its
# parent collects it, and the engine refuses to start while its old pid is in /proc.
wait_gone() {
  local pid tries
  for pid in "$@"; do
    for ((tries = 0; tries < 600; tries++)); do
      [ -e "/proc/$pid" ] || break
      sleep 0.1
    done
    [ ! -e "/proc/$pid" ] || fail "process $pid did not end within a minute"
  done
}

# The library that shows a process another time.
faketime_library() {
  local library
  for library in /usr/lib/*/faketime/libfaketimeMT.so.1; do
    [ -r "$library" ] && printf '%s\n' "$library" && return 0
  done
  return 1
}

netns_is_up() { [ "$(stat -f -c %T "$netns" 2>/dev/null)" = nsfs ]; }

# `ip netns exec` would mount a /sys of its own and hide the control groups from the engine.
in_netns() { nsenter "--net=$netns" -- "$@"; }

dockerd_pid() { cat "$docker_pidfile" 2>/dev/null || true; }
dockerd_is_up() { alive "$(dockerd_pid)" "$docker_dir/data"; }

postgres_dir() { cat "$services/postgres.dir" 2>/dev/null || true; }
postgres_pid() { head -n 1 "$(postgres_dir)/data/postmaster.pid" 2>/dev/null || true; }
postgres_is_up() { [ -n "$(postgres_dir)" ] && alive "$(postgres_pid)" "$(postgres_dir)/data"; }

# registry_pid open|closed
registry_pid() { cat "$registry_dir/$1.pid" 2>/dev/null || true; }
registry_is_up() { alive "$(registry_pid "$1")" "$registry_dir/$1.yml"; }

# The newest installed PostgreSQL from 15 on, 15 itself first.
postgres_bin() {
  local candidate
  for candidate in /usr/lib/postgresql/15 $(ls -d /usr/lib/postgresql/* 2>/dev/null | sort -rV); do
    if [ "${candidate##*/}" -ge 15 ] 2>/dev/null && [ -x "$candidate/bin/initdb" ]; then
      printf '%s\n' "$candidate/bin"
      return
    fi
  done
}

# write_env: what tests need to know, as a file for `.` and for people.
write_env() {
  local directory
  directory=$(postgres_dir)
  cat >"$services/env.new" <<ENV
export AGENTYARD_TEST_SERVICES='$here'
export AGENTYARD_TEST_SERVICES_DIR='$services'
export AGENTYARD_TEST_NETNS='$netns'
export AGENTYARD_TEST_DOCKER_HOST='$docker_host'
export AGENTYARD_TEST_DOCKERD_PID='$(dockerd_pid)'
export AGENTYARD_TEST_DOCKERD_PIDFILE='$docker_pidfile'
export AGENTYARD_TEST_REGISTRY='127.0.0.1:$registry_port'
export AGENTYARD_TEST_REGISTRY_AUTH='127.0.0.1:$registry_auth_port'
export AGENTYARD_TEST_REGISTRY_USER='$registry_user'
export AGENTYARD_TEST_REGISTRY_PASSWORD='$registry_password'
export AGENTYARD_TEST_POSTGRES_URL='postgres://$postgres_user:$postgres_password@127.0.0.1:$postgres_port/postgres'
export AGENTYARD_TEST_POSTGRES_SOCKET_URL='postgres://$postgres_user:$postgres_password@${directory//\//%2F}/postgres'
ENV
  mv "$services/env.new" "$services/env"
}
