#!/usr/bin/env bash
# Measures the model and its peers in one session and writes the figures into docs/performance.md.
#
#   bench/run.sh                       all of it, about half an hour
#   ROUNDS=1 THETAS=1.0 bench/run.sh   a quick look, ten minutes
#
# The peers' environment and the traces are kept in ${XDG_CACHE_HOME:-~/.cache}/lowmark-bench.
set -euo pipefail
cd "$(dirname "$0")/.."

libcachesim_version=0.3.5
rounds=${ROUNDS:-5}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lowmark-bench
page=docs/performance.md
cache_pages=100000

say() { printf '%s\n' "$*" >&2; }

say "building"
cargo build --release --quiet -p lowmark-model --examples -p lowmark
target=${CARGO_TARGET_DIR:-target}
examples=$target/release/examples

mkdir -p "$cache"
python=$cache/venv-$libcachesim_version/bin/python
if [[ ! -x $python ]]; then
    say "installing libcachesim $libcachesim_version"
    python3 -m venv "$cache/venv-$libcachesim_version"
    "$python" -m pip install --quiet "libcachesim==$libcachesim_version"
fi

figures=$(mktemp)
trap 'rm -f "$figures"' EXIT
{
    echo
    echo "- processor: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) CPUs"
    echo "- load before: $(cut -d ' ' -f 1-3 /proc/loadavg)"
    echo "- $(rustc --version), libcachesim $libcachesim_version, $rounds rounds"
    echo
    say "measuring the model"
    python3 bench/figures.py "$examples" "$rounds"
    for theta in ${THETAS:-1.0 0.8}; do
        trace=$cache/zipf-$theta.bin
        "$examples/zipf_trace" "$theta" "$trace"
        say "replaying zipf $theta"
        echo "Replay of zipf $theta:"
        echo
        "$python" bench/peers.py "$trace" "$cache_pages" "zipf $theta replay" "$examples/measure" "$rounds"
        echo
    done
    say "reading traces"
    eval "$(bin/fetch-test-tools.sh)"
    python3 bench/readers.py "$target/release/lowmark" "${LOWMARK_CAPTURES:-captures}" \
        "${LOWMARK_VMSCAN_SCRIPT:--}" "$rounds"
    echo
    echo "- load after: $(cut -d ' ' -f 1-3 /proc/loadavg)"
    echo
} >"$figures"

sed -i -e '/^<!-- figures -->$/,/^<!-- end of figures -->$/{//!d}' -e "/^<!-- figures -->\$/r $figures" "$page"
say "written to $page"
