# Shared by the scripts in this folder; sourced by bash, never run.

set -euo pipefail

packaging=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$packaging/.." && pwd)
cd "$repository"

# Everything that is packed, beside the packages themselves.
package=target/package
# Programs of crates.io that are built once.
tools=target/release-tools
version=$(sed -n '/^\[workspace.package\]/,/^\[/ s/^version = "\(.*\)"/\1/p' Cargo.toml)
# Times in packages are that of the commit.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

say() { printf '%s\n' "$*" >&2; }
fail() { say "packaging: $*"; exit 1; }

# need_program: the program that `make release` has made.
need_program() {
  [ -x "$package/agentyard" ] || fail "there is no $package/agentyard; run \`make release\` first"
  local found
  found=$("$package/agentyard" --version)
  [[ "$found" == "agentyard $version"* ]] || fail "$package/agentyard is $found, not $version; run \`make release\` first"
}

# install_tool CRATE VERSION: builds a program of crates.io, if it is not there in this version.
install_tool() {
  local crate=$1 wanted=$2
  grep -qs "^\"$crate $wanted " "$tools/.crates.toml" && return 0
  say "packaging: building $crate $wanted"
  "${CARGO:-cargo}" install --quiet --locked --root "$tools" "$crate@$wanted"
}
