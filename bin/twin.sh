#!/bin/sh
# Twin runs: workloads on real kernels and on the model, counter by counter, into docs/twin.md.
#
#   bin/twin.sh                    the suite under workloads/twin: an hour without KVM
#   bin/twin.sh --repeat N         the same with N runs of each kernel instead of five
#   bin/twin.sh --keep DIR         the same, and all recordings are kept, a directory for each workload
#   bin/twin.sh --kept DIR         the model anew beside the runs of kernels that were kept there
#   bin/twin.sh --short            one workload, one run of each kernel, printed only: what CI does
#   bin/twin.sh WORKLOAD.toml ...  these, printed only
#   bin/twin.sh --random N         N workloads that nobody chose, each with two values of a setting, into
#                                  docs/twin-random.md; --seed S in place of the day as YYYYMMDD; with --kept DIR
#                                  those that were kept there with --keep DIR
#
# 1. lowmark and its runner are built, QEMU and the kernels fetched if need be.
# 2. A workload that cannot be run is listed with the reason, and the others are run all the same.
set -eu
cd "$(dirname "$0")/.."

usage() { sed -n '2,16s/^# \{0,1\}//p' "$0"; }
refuse() { echo "twin: $1" >&2; exit 2; }
number() {
    case ${2-} in
        '' | *[!0-9]*) refuse "$1 needs a number" ;;
    esac
}

short=no
page=docs/twin.md
repeat=
keep=
kept=
random=
seed=
kernels='6.1 6.12 6.18'
while [ $# -gt 0 ]; do
    case $1 in
        --short) short=yes; shift ;;
        --repeat) number "$@"; repeat=$2; shift 2 ;;
        --random) number "$@"; random=$2; shift 2 ;;
        --seed) number "$@"; seed=$2; shift 2 ;;
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
[ "$short" = no ] || [ -z "$keep$kept$random" ] || refuse '--short keeps nothing, and runs one workload'
[ -z "$seed" ] || [ -n "$random" ] || refuse '--seed is for --random'
if [ -n "$random" ]; then
    [ $# -eq 0 ] || refuse '--random makes its own workloads'
    page=docs/twin-random.md
    kernels='6.1 6.18'
    seed=${seed:-$(date -u +%Y%m%d)}
elif [ $# -gt 0 ]; then
    page=
elif [ "$short" = yes ]; then
    page=
    repeat=${repeat:-1}
    kernels='6.1 6.18'
    set -- workloads/twin/swap-anon.toml
else
    set -- workloads/twin/*.toml
fi

# The short suite takes what the tests have built: what is built without them has its dependencies with other features.
directory=release
if [ "$short" = yes ]; then
    directory=debug
    ${CARGO:-cargo} test --quiet --workspace --no-run >&2
else
    ${CARGO:-cargo} build --quiet --release --package lowmark
fi
lowmark=${CARGO_TARGET_DIR:-target}/$directory/lowmark
if [ -z "$kept" ]; then
    command -v qemu-system-x86_64 > /dev/null || bin/install-guest-tools.sh --private
    "$lowmark" kernels fetch $kernels >&2
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
if [ -n "$random" ]; then
    if [ -z "$kept" ]; then
        set -- --random "$random" --seed "$seed" --knobs --out "${keep:-$work/runs}"
    fi
elif [ -n "$keep" ]; then
    # A directory for each workload, also if there is but one.
    [ $# -gt 1 ] || keep=$keep/$(basename "$1" .toml)
    set -- "$@" --out "$keep"
fi
[ -z "$repeat" ] || set -- "$@" --repeat "$repeat"
[ "$short" = no ] || set -- "$@" --kernel v6.1 --kernel v6.18 --set order=seq
[ -z "$kept" ] || set -- "$@" --kept "$kept"
status=0
"$lowmark" twin "$@" > "$work/text" || status=$?
if [ -z "$page" ]; then
    cat "$work/text"
    exit $status
fi
[ -s "$work/text" ] || exit $status

# `== NAME ==` begins a part; what all have in common comes first.
parts() {
    awk '/^== .* ==$/ {
        if (open) print "```"
        title = $0; gsub(/^== | ==$/, "", title)
        printf "\n## %s\n\n```\n", title
        open = 1; getline
        next
    }
    { print }
    END { if (open) print "```" }'
}
# Whoever reads the page has the recordings elsewhere.
where=${kept:-${keep:-$work/runs}}
elsewhere=DIR
[ -z "$random" ] || elsewhere=twin-random-$seed
commit=$(git rev-parse --short=12 HEAD 2> /dev/null || echo unknown)
{
    if [ -n "$random" ]; then
        echo '# Twin runs of loads that nobody chose'
        echo
        echo "Workloads that follow from a seed, on real kernels in guests and on the model. Written by \`make twin-random\`;"
        echo "[real-kernels.md](real-kernels.md) says what a load is made of and how to read this."
        echo
        echo "| | |"
        echo "|---|---|"
        echo "| commit of the model | \`$commit\` |"
        echo "| seed | $seed |"
        echo "| day | $(date -u +%Y-%m-%d) |"
        if [ -n "$kept" ]; then
            echo "| runs of kernels | kept |"
        else
            echo "| again | \`lowmark twin --random $random --seed $seed --knobs${repeat:+ --repeat $repeat}\` |"
        fi
    else
        echo '# Twin runs'
        echo
        echo "The suite under \`workloads/twin\`, on real kernels in guests and on the model. Written by"
        echo "\`make twin\`; [real-kernels.md](real-kernels.md) says how to read it."
    fi
    sed -n '/^== Over all loads ==$/,$p' "$work/text" | sed "s|$where|$elsewhere|g" | parts
    sed '/^== Over all loads ==$/,$d' "$work/text" | parts
} > "$page"
exit $status
