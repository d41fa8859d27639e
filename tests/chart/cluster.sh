# Shared by tests/chart/on-cluster and tests/chart/pods-on-cluster; sourced by bash, never run: a cluster of its own with a registry,
# volumes and PostgreSQL, and the programs that the documents name.
#
# AGENTYARD_TEST_CLUSTER_PROGRAMS names a folder with three programs:
#   build.sh CACHE            makes what the others need; called each time
#   up.sh CACHE STATE NETNS   starts the cluster, with its data in STATE, and prints the path of an administrator's kubeconfig;
#                             in NETNS the node has the address 10.90.0.1, pulls from a registry at 10.90.0.1:5000 without TLS,
#                             resolves names of Services, whose addresses are in 10.96.0.0/16, enforces NetworkPolicies, and has
#                             the image localhost/busybox:1
#   down.sh STATE             ends it
# AGENTYARD_TEST_CLUSTER_CACHE is CACHE (default: target/cluster).

. "$(dirname "${BASH_SOURCE[0]}")/../services/lib.sh"
need_root
cluster=${AGENTYARD_TEST_CLUSTER_PROGRAMS:-}
[ -n "$cluster" ] || fail "AGENTYARD_TEST_CLUSTER_PROGRAMS is not set: name a folder whose build.sh, up.sh and down.sh make, start and end a one-node
Kubernetes; what they are given and print is written in tests/chart/cluster.sh"
for program in skopeo mmdebstrap docker-registry jq; do command -v $program >/dev/null || fail "missing: $program (apt-get install $program)"; done
[ "${1:-}" != --check ] || exit 0
cache=${AGENTYARD_TEST_CLUSTER_CACHE:-$repository/target/cluster}
image=$(realpath "${1:-$repository/target/agentyard-image.tar}")
node=10.90.0.1
registry=$node:5000
network=agentyard-chart
engine=$repository/target/engine-root.tar
work=$(mktemp -d)
state=$work/state
mkdir -p "$state" "$work/bin" "$work/volumes"

cleanup() {
  local status=$?
  set +e
  if [ $status != 0 ]; then
    kubectl get pods,persistentvolumeclaims,events --all-namespaces >&2
    kubectl --namespace agents logs -l app.kubernetes.io/instance=agentyard --all-containers --prefix --tail 30 >&2
  fi
  kill "${jobs[@]}" 2>/dev/null
  [ ! -e "$work/postgres/postmaster.pid" ] || kill -QUIT "$(head -n 1 "$work/postgres/postmaster.pid")"
  "$cluster/down.sh" "$state"
  rm -rf --one-file-system "$work"
  exit $status
}
jobs=() forward=
trap cleanup EXIT

# All that differs from the documents: the network of the cluster, the registry's name and missing TLS, and the values of $work/values.yaml.
inside="nsenter --net=/run/netns/$network --"
program() {
  printf '#!/bin/bash\n%s\n' "$2" >"$work/bin/$1"
  chmod 755 "$work/bin/$1"
}
program kubectl "exec $inside '$repository/target/helm/kubectl' \"\$@\""
program skopeo "exec $inside '$(command -v skopeo)' --insecure-policy \"\$@\" --dest-tls-verify=false"
program helm "[ \$1 != install ] || set -- \"\$@\" --values '$work/values.yaml'
exec $inside '$repository/target/helm/helm' \"\$@\""
program curl "exec $inside '$(command -v curl)' --silent --show-error --max-time 10 \"\$@\""
export PATH=$work/bin:$PATH
ln -s "$repository/charts" "$work/charts"
ln -s "$image" "$work/agentyard-image.tar"

# run LINE: a command of a document.
run() {
  local line=${1//registry.example.org/$registry}
  say "\$ $1"
  case $line in
    *port-forward*)
      [ -z "$forward" ] || kill "$forward"
      eval "exec $line" >"$work/forward.log" 2>&1 &
      forward=$!
      jobs+=("$forward")
      wait_for 20 grep -q Forwarding "$work/forward.log"
      ;;
    *) eval "$line" 2>&1 | tee -a "$work/said" ;;
  esac
}
# run_page PAGE HEADING: the commands below a heading.
run_page() {
  local line lines
  lines=$(awk -v heading="$2" '/^```/ { code = ($0 == "```console") } !code && /^#+ / { on = ($0 == heading) }
    on && code && sub(/^\$ /, "")' "$repository/$1")
  [ -n "$lines" ] || fail "$1: no commands below $2"
  while read -r line <&3; do run "$line" || fail "$1: $line"; done 3<<<"$lines"
}
# wait_for SECONDS COMMAND…
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || fail "not within its time: $*"
    sleep 0.3
  done
}
service() { kubectl --namespace agents exec deployment/agentyard -c service -- "$@"; }
pod() { kubectl --namespace agents get pods -l app.kubernetes.io/component=service -o 'jsonpath={.items[*].metadata.uid}'; }

# volume NAME NAMESPACE/CLAIM [CLASS [MODE]]: a volume of this class (default: the default one) for this claim, empty unless it
# exists; in place of a provisioner. It belongs to no user, as a new one does.
volume() {
  [ -d "$work/volumes/$1" ] || install -d -m 755 "$work/volumes/$1"
  kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: PersistentVolume
metadata: {name: $1}
spec:
  storageClassName: ${3:-standard}
  capacity: {storage: 100Gi}
  accessModes: [${4:-ReadWriteOnce}]
  hostPath: {path: $work/volumes/$1, type: Directory}
  claimRef: {namespace: ${2%/*}, name: ${2#*/}}
YAML
}

# make_engine: an image of Debian's engine, as an OCI layout.
make_engine() {
  if [ ! -f "$engine" ]; then
    say "chart: installing Debian's engine"
    mmdebstrap --quiet --mode=root --variant=essential --include=docker.io,iptables,ca-certificates \
      --aptopt='APT::Install-Recommends "false"' trixie "$engine.new.tar" "${MIRROR:-http://deb.debian.org/debian}"
    mv "$engine.new.tar" "$engine"
  fi
  SOURCE_DATE_EPOCH=0 "$repository/packaging/oci/assemble" engine:1 1 "$work/engine" "$engine"
  skopeo copy --quiet "oci:$work/engine:1" "docker://$registry/engine:1"
  rm -r "$work/engine"
}

docker --host "$docker_host" save --output "$work/echo.tar" echo:1

# --- the cluster, its registry and storage class
"$cluster/build.sh" "$cache"
export KUBECONFIG
KUBECONFIG=$("$cluster/up.sh" "$cache" "$state" "$network")
cat >"$work/registry.yml" <<YAML
version: 0.1
log: {level: error}
storage: {filesystem: {rootdirectory: $work/registry}}
http: {addr: "$registry"}
YAML
$inside docker-registry serve "$work/registry.yml" >"$work/registry.log" 2>&1 &
jobs+=($!)
wait_for 20 curl --fail "http://$registry/v2/"
skopeo copy --quiet "docker-archive:$work/echo.tar" "docker://$registry/echo:1"
rm "$work/echo.tar"
kubectl apply -f - >/dev/null <<YAML
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: standard, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: kubernetes.io/no-provisioner
YAML
# What no document says: the test agent in place of PicoClaw.
cat >"$work/values.yaml" <<YAML
settings: {image.name: $registry/echo, image.tag: "1", image.registry_plain_http: ["$registry"]}
networkPolicy: {metricsFrom: []}
YAML

# follow_notes [PATTERN]: what the notes of the installation say, without lines that match.
follow_notes() {
  local line lines
  lines=$(helm get notes agentyard --namespace agents | sed -n 's/^  //p' | grep -v "${1:-^$}")
  while read -r line <&3; do run "$line" || fail "notes: $line"; done 3<<<"$lines"
}

# sign_in PASSWORD [CURL'S OPTION…]: as the first administrator.
sign_in() {
  local scheme=http
  [ $# = 1 ] || scheme=https
  curl --fail --output "$work/answer" "${@:2}" --data username=admin --data-urlencode "password=$1" $scheme://127.0.0.1:8080/api/login
}

# define_kind KIND: one of the Prometheus operator, without its schema.
define_kind() {
  local name=${1,,}
  kubectl apply -f - >/dev/null <<YAML
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ${name}s.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  names: {kind: $1, plural: ${name}s, singular: $name}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
YAML
  kubectl wait --for=condition=Established --timeout=30s "customresourcedefinition/${name}s.monitoring.coreos.com" >/dev/null
}

# empty NAME [CLASS [MODE]]: a new volume in place of one whose claim is gone.
empty() {
  kubectl delete persistentvolume "$1" >/dev/null
  rm -rf "$work/volumes/$1"
  volume "$1" "agents/agentyard-$1" "${@:2}"
}

# start_postgres: a server on the node, with an empty database.
start_postgres() {
  say "chart: starting PostgreSQL"
  chmod 711 "$work"
  install -d -o postgres -m 700 "$work/postgres"
  as_postgres() { $inside setpriv --reuid=postgres --regid=postgres --clear-groups -- "$(postgres_bin)/$1" "${@:2}"; }
  as_postgres initdb -D "$work/postgres" -U app --auth=trust --encoding=UTF8 --locale=C.UTF-8 --no-sync >"$work/postgres.log" 2>&1
  echo "host all all 10.0.0.0/8 trust" >>"$work/postgres/pg_hba.conf"
  as_postgres pg_ctl -D "$work/postgres" -w -l "$work/postgres/log" -o "-c listen_addresses=$node -c unix_socket_directories=$work/postgres" start >>"$work/postgres.log"
  as_postgres createdb --host="$work/postgres" --username=app agentyard
}
