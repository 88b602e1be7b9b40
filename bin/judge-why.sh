#!/bin/sh
# Judges `lowmark why`: the loads of workloads/why in guests, and what has to be said of each, into docs/why.md.
#
#   bin/judge-why.sh               runs what is missing on three kernels: 40 minutes without KVM
#   bin/judge-why.sh --keep DIR    the same, and the recordings are kept there; those that are there are not run again
#   bin/judge-why.sh --kept DIR    runs nothing, and judges the recordings that were kept there
#   bin/judge-why.sh LOAD ...      these loads, printed only: their names in workloads/why/expected.toml
#
# 1. lowmark, its runner and the judge are built, QEMU and the kernels fetched if need be.
# 2. Loads in which nothing is wrong run on one kernel each, all others on all three.
# 3. crates/lowmark-report/examples/judge_why.rs compares; the status is 1 if less is right than is asked for.
set -eu
cd "$(dirname "$0")/.."

usage() { sed -n '2,12s/^# \{0,1\}//p' "$0"; }
refuse() { echo "judge-why: $1" >&2; exit 2; }

expected=workloads/why/expected.toml
runs=
kept=no
while [ $# -gt 0 ]; do
    case $1 in
        --keep | --kept)
            [ -n "${2-}" ] || refuse "$1 needs a directory"
            runs=$2
            [ "$1" = --keep ] || kept=yes
            shift 2
            ;;
        -h | --help) usage; exit 0 ;;
        -*) usage >&2; refuse "unknown argument $1" ;;
        *) break ;;
    esac
done
page=docs/why.md
[ $# -eq 0 ] || page=
[ "$kept" = no ] || [ -d "$runs" ] || refuse "$runs: no such directory"
[ "$kept" = no ] || [ $# -eq 0 ] || refuse '--kept judges all that was kept, and no load by its name'

cargo=${CARGO:-cargo}
target=${CARGO_TARGET_DIR:-target}/release
$cargo build --quiet --release --package lowmark-report --example judge_why
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
runs=${runs:-$work/runs}

if [ "$kept" = no ]; then
    $cargo build --quiet --release --package lowmark --no-default-features
    command -v qemu-system-x86_64 > /dev/null || bin/install-guest-tools.sh --private
    "$target/lowmark" kernels fetch 6.1 6.12 6.18 >&2
    [ $# -gt 0 ] || set -- $(sed -n 's/^workload = "\(.*\)"$/\1/p' "$expected")
    turn=0
    for load in "$@"; do
        [ -f "workloads/why/$load.toml" ] || refuse "$load: no such load in workloads/why"
        kernels='6.1 6.12 6.18'
        case $load in
            fine-*)
                turn=$((turn % 3 + 1))
                kernels=$(echo "$kernels" | cut -d' ' -f$turn)
                ;;
        esac
        for kernel in $kernels; do
            # The name of a recording says its kernel.
            set +f
            for done in "$runs/$load"/*_"$kernel"_guest_*; do
                [ -d "$done" ] && continue 2
            done
            echo "$load on $kernel" >&2
            status=0
            "$target/lowmark" run "workloads/why/$load.toml" --on guest --image "$kernel" --interval 100 \
                --events --out "$runs/$load" --quiet > "$work/text" || status=$?
            # 1 is a load that ran out of memory, which is what some are for.
            [ $status -le 1 ] || refuse "$load on $kernel did not run"
        done
    done
fi

status=0
"$target/examples/judge_why" "$expected" "$runs" > "$work/page" || status=$?
[ $status -le 1 ] || exit $status
if [ -n "$page" ]; then
    cp "$work/page" "$page"
else
    cat "$work/page"
fi
exit $status
