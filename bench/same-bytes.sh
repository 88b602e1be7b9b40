#!/usr/bin/env bash
# Hashes of recordings, for changes that must not change what the model does:
#
#   bench/same-bytes.sh LOWMARK > before      a line for each workload and kernel: the hash, both names
#   bench/same-bytes.sh LOWMARK > after && diff before after
#   LOWMARK_KERNELS='v3.6 v6.18' bench/same-bytes.sh LOWMARK      on these kernels alone
#
# Every workload that the model runs, made small, on kernels of every era, with all events. A run that the model
# refuses has its error hashed. LOWMARK is a program that was built beforehand (`cargo build --release`); one run for
# each CPU at a time, a few minutes in all.
set -euo pipefail
lowmark=$(realpath "${1:?which lowmark: a path to the program}")
# A program that does not start would be refused everywhere alike.
"$lowmark" --version > /dev/null
cd "$(dirname "$0")/.."

KERNELS=(v2.6.37 v3.0 v3.2 v3.6 v3.9 v3.11 v3.14 v4.0 v4.2 v4.4 v4.7 v4.8 v4.11 v4.14 v5.0 v5.4 v5.9 v5.14 v5.18
  v6.1 v6.6 v6.12 v6.18)
# Workload and settings, as they are given to `lowmark run`.
WORKLOADS=(
  'dd-kill --set n=3 --set ram=256M'
  'dd-n --set n=4 --set ram=256M --set length=20s'
  'dd-rsync --set n=2 --set ram=256M'
  'fs-mark --set ram=256M'
  'mapped-file-stream --set ram=64M --set reserved=4M --set occupied=8M'
  'postmark --set ram=128M --set reserved=4M --set occupied=8M'
  'simoop --set ram=256M --set reserved=4M --set occupied=8M --set burst=2M --set file=4M --set warm=10s --set run=20s'
  'stutter --set ram=128M --set reserved=4M --set occupied=8M --set probed=4M'
  'usemem --set ram=256M --set reserved=4M --set occupied=8M --set n=4'
  'swap-seq-rand --set touches=300000 --set kind=anon-private --set order=random'
  'swap-seq-rand --set touches=300000 --set kind=anon-shared --set order=seq'
  'swap-small --set order=random'
)
for twin in workloads/twin/*.toml; do
  WORKLOADS+=("$twin")
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One run: its recordings are hashed as files in the order of their names, and gone.
one() {
  local number=$1 kernel=$2 out=$work/$1 said
  shift 2
  mkdir "$out"
  if "$lowmark" run "$@" --kernel "$kernel" --seed 1 --jobs 1 --events --quiet --out "$out/runs" > "$out/said" 2>&1; then
    rm "$out/said"
    said=
  else
    said=" ($(grep -m 1 -v '^ *$' "$out/said"))"
  fi
  (cd "$out" && find . -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16) > "$work/$number.hash"
  printf '%s %s %s%s\n' "$(cat "$work/$number.hash")" "$kernel" "$*" "$said" > "$work/$number.line"
  rm -rf "$out"
}

number=100000
for workload in "${WORKLOADS[@]}"; do
  for kernel in ${LOWMARK_KERNELS:-${KERNELS[@]}}; do
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
    # shellcheck disable=SC2086 # settings are words
    one $number "$kernel" $workload &
    number=$((number + 1))
  done
done
wait
cat "$work"/*.line
