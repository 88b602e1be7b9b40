#!/bin/sh
# Judges `lowmark whatif`: pairs of guests that ran the same load with another setting or kernel (workloads/whatif/pairs.toml).
#
#   bin/judge-whatif.sh --kept DIR    asks from recordings that were kept there: a directory for each workload, as
#                                     `bin/twin.sh --keep DIR` fills it (docs/whatif.md has the rest)
#
# 1. lowmark and the judge are built.
# 2. crates/lowmark-whatif/examples/judge_whatif.rs asks each pair from one side and compares with the other; the status is 1 if less
#    is right than is asked for.
set -eu
cd "$(dirname "$0")/.."

usage() { sed -n '2,9s/^# \{0,1\}//p' "$0"; }
refuse() { echo "judge-whatif: $1" >&2; exit 2; }

case ${1-} in
    -h | --help) usage; exit 0 ;;
    --kept) [ $# -eq 2 ] || refuse '--kept needs a directory, and nothing else' ;;
    *) usage >&2; refuse "expected --kept DIR" ;;
esac
[ -d "$2" ] || refuse "$2: no such directory"

cargo=${CARGO:-cargo}
target=${CARGO_TARGET_DIR:-target}/release
$cargo build --quiet --release --package lowmark --no-default-features
$cargo build --quiet --release --package lowmark-whatif --example judge_whatif
"$target/examples/judge_whatif" "$target/lowmark" workloads/whatif/pairs.toml "$2"
