#!/usr/bin/env bash
# Whether the alarm works: plants a bug in each target (`look` in src/lib.rs) and fails unless the fuzzer
# finds it. fuzz/canary.sh [TARGET...]; needs what run.sh needs.
set -euo pipefail
cd "$(dirname "$0")"
. ./targets.sh

# Executions within which it must be found.
EXECUTIONS_MAX=${EXECUTIONS_MAX:-3000000}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
missed=()
for target in ${*:-$TARGETS}; do
  build "$target" --features canary > "$scratch/build" 2>&1 || { cat "$scratch/build" >&2; exit 1; }
  # From the corpus alone: what other runs have found does not help, and the input is not kept.
  if FOUND=$scratch/found fuzz "$target" -runs="$EXECUTIONS_MAX" -seed=1 -use_value_profile=1 \
    -artifact_prefix="$scratch/" > "$scratch/log" 2>&1; then
    missed+=("$target")
    echo "$target: not found in $EXECUTIONS_MAX executions"
  elif grep -q 'index out of bounds: the len is 8 but the index is 647' "$scratch/log"; then
    echo "$target: found after $(sed -n 's/^stat::number_of_executed_units: *//p' "$scratch/log") executions"
  else
    tail -n 30 "$scratch/log" >&2
    echo "$target: stopped for another reason, see above" >&2
    exit 1
  fi
done
if [ ${#missed[@]} -gt 0 ]; then
  echo "the alarm does not work: ${missed[*]}" >&2
  exit 1
fi
