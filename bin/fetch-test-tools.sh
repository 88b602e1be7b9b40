#!/usr/bin/env bash
# Fetches what some tests compare with, into ${XDG_CACHE_HOME:-~/.cache}/lowmark/test-tools, and prints the
# variables that name it, to be evaluated:
#
#   eval "$(bin/fetch-test-tools.sh)"
#
# - a Python with pyarrow and perfetto, which read back what is exported (LOWMARK_PYTHON);
# - trace-cmd with its libraries, unpacked without installing (LOWMARK_TRACE_CMD);
# - trace-vmscan-postprocess.pl of Debian's linux-doc-6.1, unpacked without installing (LOWMARK_VMSCAN_SCRIPT).
#
# What cannot be had is said on stderr and left out: the tests that need it then say that they judge nothing.
set -uo pipefail

pyarrow_version=21.0.0
perfetto_version=0.59.1
place=${XDG_CACHE_HOME:-$HOME/.cache}/lowmark/test-tools
mkdir -p "$place"
say() { printf '%s\n' "$*" >&2; }

python=$place/venv/bin/python
if ! "$python" -c 'import pyarrow, perfetto' 2>/dev/null; then
  rm -rf "$place/venv"
  if ! { python3 -m venv "$place/venv" &&
    "$python" -m pip install --quiet "pyarrow>=$pyarrow_version" "perfetto==$perfetto_version"; } >&2; then
    say "no Python with pyarrow and perfetto: exports are not read back by them"
    rm -rf "$place/venv"
  fi
fi
[ -x "$python" ] && printf 'export LOWMARK_PYTHON=%q\n' "$python"

unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT

trace_cmd=$place/trace-cmd.sh
if [ ! -x "$trace_cmd" ] && mkdir -p "$unpacked/trace-cmd" && cd "$unpacked/trace-cmd" &&
  apt-get download --quiet trace-cmd libtracefs1 libtraceevent1 >&2; then
  for package in *.deb; do dpkg -x "$package" "$place/trace-cmd" >&2; done
  libraries=$(dirname "$(find "$place/trace-cmd" -name 'libtraceevent.so.1' | head -n 1)")
  printf '#!/bin/sh\nLD_LIBRARY_PATH=%q exec %q "$@"\n' "$libraries" "$place/trace-cmd/usr/bin/trace-cmd" \
    >"$trace_cmd"
  chmod +x "$trace_cmd"
fi
# It says so, but with a status that is not 0.
if [[ $("$trace_cmd" --version 2>&1) == *"trace-cmd version"* ]]; then
  printf 'export LOWMARK_TRACE_CMD=%q\n' "$trace_cmd"
else
  say "no trace-cmd: exported trace.dat files are not read back by it"
  rm -f "$trace_cmd"
fi

script=$place/trace-vmscan-postprocess.pl
if [ ! -s "$script" ]; then
  if (cd "$unpacked" && apt-get download --quiet linux-doc-6.1 && dpkg -x linux-doc-6.1_*.deb tree) >&2; then
    found=$(find "$unpacked/tree" -name 'trace-vmscan-postprocess.pl*' | head -n 1)
    case $found in
      *.gz) gzip -dc "$found" >"$script" ;;
      ?*) cp "$found" "$script" ;;
    esac
  fi
  [ -s "$script" ] || say "no trace-vmscan-postprocess.pl: --compat is not compared with the script itself"
fi
[ -s "$script" ] && printf 'export LOWMARK_VMSCAN_SCRIPT=%q\n' "$script"
exit 0
