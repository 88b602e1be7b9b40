#!/bin/sh
# Twin runs of the suite under workloads/twin: each workload on real kernels and on the model, counter by
# counter, into docs/twin.md.
#
#   bin/twin.sh                    all of it: half an hour without KVM
#   bin/twin.sh --repeat N         the same with N runs of each kernel instead of five
#   bin/twin.sh --keep DIR         the same, and all recordings are kept, a directory for each workload
#   bin/twin.sh --kept DIR         the model anew beside the runs of kernels that were kept there
#   bin/twin.sh --short            one workload, one run of each kernel, printed only: what CI does
#   bin/twin.sh WORKLOAD.toml ...  these, printed only
#
# 1. lowmark and its runner are built, QEMU and the kernels fetched if need be.
# 2. Each workload is run on its own; one that the model cannot run yet is listed with the reason.
set -eu
cd "$(dirname "$0")/.."

usage() { sed -n '2,13s/^# \{0,1\}//p' "$0"; }
refuse() { echo "twin: $1" >&2; exit 2; }

short=no
page=docs/twin.md
repeat=
keep=
kept=
kernels='6.1 6.12 6.18'
while [ $# -gt 0 ]; do
    case $1 in
        --short) short=yes; shift ;;
        --repeat)
            repeat=${2-}
            case $repeat in
                '' | *[!0-9]*) refuse '--repeat needs a number' ;;
            esac
            shift 2
            ;;
        --keep | --kept)
            [ -n "${2-}" ] || refuse "$1 needs a directory"
            if [ "$1" = --keep ]; then keep=$2; else kept=$2; fi
            shift 2
            ;;
        -h | --help) usage; exit 0 ;;
        -*) usage >&2; refuse "unknown argument $1" ;;
        *) break ;;
    esac
done
[ -z "$keep" ] || [ -z "$kept" ] || refuse '--keep and --kept exclude each other'
[ "$short" = no ] || [ -z "$keep$kept" ] || refuse '--short keeps nothing'
if [ $# -gt 0 ]; then
    page=
elif [ "$short" = yes ]; then
    page=
    repeat=${repeat:-1}
    kernels='6.1 6.18'
    set -- workloads/twin/swap-anon.toml
else
    set -- workloads/twin/*.toml
fi

# The short suite takes what the tests have built.
profile=release
directory=release
if [ "$short" = yes ]; then
    profile=test
    directory=debug
fi
${CARGO:-cargo} build --quiet --profile "$profile" --package lowmark
lowmark=${CARGO_TARGET_DIR:-target}/$directory/lowmark
if [ -z "$kept" ]; then
    command -v qemu-system-x86_64 > /dev/null || bin/install-guest-tools.sh --private
    "$lowmark" kernels fetch $kernels >&2
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
status=0
for workload; do
    name=$(basename "$workload" .toml)
    echo "twin: $name" >&2
    set -- ${repeat:+--repeat "$repeat"}
    [ "$short" = no ] || set -- "$@" --set order=seq
    [ -z "$keep" ] || set -- "$@" --out "$keep/$name"
    [ -z "$kept" ] || set -- "$@" --kernel-runs "$kept/$name"
    if "$lowmark" twin "$workload" "$@" > "$work/$name" 2> "$work/error"; then
        cat "$work/$name"
    else
        code=$?
        # The model's own limits are said in the table; a guest that fails is an error here.
        [ "$code" = 2 ] && grep -q 'no twin: ' "$work/error" || status=$code
        cat "$work/error" >&2
        sed 's/^/    /' "$work/error" > "$work/$name"
    fi
done
[ -n "$page" ] || exit $status
{
    echo '# Twin runs'
    echo
    echo "The suite under \`workloads/twin\`, on real kernels in guests and on the model. Written by"
    echo "\`make twin\`; [real-kernels.md](real-kernels.md) says how to read it."
    for result in "$work"/*; do
        [ "$(basename "$result")" = error ] && continue
        printf '\n## %s\n\n```\n' "$(basename "$result")"
        cat "$result"
        echo '```'
    done
} > "$page"
exit $status
