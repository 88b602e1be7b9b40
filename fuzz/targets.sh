# What run.sh and canary.sh share: the targets, and how one is built and run. Read with `.`.

TARGETS="text_line stream trace_dat perf_data format ring_buffer event_json report export recording"
# Bytes, seconds, executions: see docs/fuzzing.md.
MEMORY_MAX_MB=512
TIME_MAX_S=5
# What is read is at most a few kilobytes: to report on it takes milliseconds.
REPORT_TIME_MAX_S=2
SANITIZER=${SANITIZER:-none}
# Binary traces that come through a reader go through a file: better one in memory.
if [ -z "${TMPDIR:-}" ] && [ -w /dev/shm ]; then
  export TMPDIR=/dev/shm
fi

# Longest input of a target, bytes.
length_max() {
  case $1 in
    text_line | event_json) echo 400 ;;
    stream) echo 700 ;;
    report | export | recording) echo 4000 ;;
    trace_dat) echo 2700 ;;
    perf_data) echo 1600 ;;
    format) echo 1500 ;;
    ring_buffer) echo 520 ;;
  esac
}

# build TARGET [OPTION...]
build() {
  local target=$1
  shift
  cargo +nightly fuzz build --fuzz-dir . --sanitizer "$SANITIZER" "$@" "$target"
}

# Options that make the targets of reports faster, which spend their time on what is printed and not on what is read:
# a faster allocator, and comparisons that are not recorded. The readers have targets of their own that record them;
# canary.sh builds without, and so does who asks for a sanitizer, which watches the usual allocator.
faster() {
  case $1-$SANITIZER in
    report-none | export-none | recording-none) echo --no-trace-compares --features mimalloc ;;
  esac
}

# The committed inputs that a target begins with: whole traces are also those of their readers.
seeds() {
  case $1 in
    report | export) echo corpus/{"$1",text_line,stream,trace_dat,perf_data} ;;
    *) echo "corpus/$1" ;;
  esac
}

# Longest execution of a target, s.
time_max() {
  case $1 in
    report | export | recording) echo $REPORT_TIME_MAX_S ;;
    *) echo $TIME_MAX_S ;;
  esac
}

# fuzz TARGET [OPTION of libFuzzer...]: what was built.
fuzz() {
  local target=$1 found
  shift
  found=${FOUND:-${CARGO_TARGET_DIR:-target}/found}/$target
  mkdir -p "$found" "artifacts/$target"
  "${CARGO_TARGET_DIR:-target}/$(host)/release/$target" "$found" $(seeds "$target") \
    -max_len="$(length_max "$target")" -dict="dictionaries/$target.dict" \
    -rss_limit_mb=$MEMORY_MAX_MB -timeout="$(time_max "$target")" -artifact_prefix="artifacts/$target/" \
    -print_final_stats=1 "$@"
}

host() {
  rustc +nightly --version --verbose | sed -n 's/^host: //p'
}
