#!/usr/bin/env bash
# Fuzzes every reader and the reports for a bounded time: fuzz/run.sh [SECONDS [TARGET...]], 30 seconds each if not said.
#
# 1. With cargo-fuzz and a nightly toolchain: libFuzzer, from the committed corpus. What it finds on the way
#    is kept in target/found and is not committed; an input that fails is in artifacts/.
# 2. Without: what to install, and the replay on stable Rust, longer than it takes in `make test`.
#
# SANITIZER=address also watches what the C libraries do (slower); the readers themselves have no `unsafe`.
set -euo pipefail
cd "$(dirname "$0")"
. ./targets.sh

seconds=${1:-30}
shift || true

if ! cargo fuzz --version > /dev/null 2>&1 || ! cargo +nightly --version > /dev/null 2>&1; then
  cat >&2 <<'MISSING'
For libFuzzer two things are missing or one of them:
  rustup toolchain install nightly --profile minimal
  cargo install cargo-fuzz
Until then the corpus and mutations of it are replayed on stable Rust.
MISSING
  cd ..
  export LOWMARK_FUZZ_ROUNDS=$(((seconds + 4) / 5))
  cargo test --package lowmark-trace --test fuzz_smoke
  exec cargo test --package lowmark --test fuzz_reports
fi

failed=()
for target in ${*:-$TARGETS}; do
  echo "== $target, $seconds s"
  build "$target" $(faster "$target")
  fuzz "$target" -max_total_time="$seconds" || failed+=("$target")
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "failed: ${failed[*]}; the inputs are in fuzz/artifacts" >&2
  exit 1
fi
