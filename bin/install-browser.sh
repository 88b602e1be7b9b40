#!/bin/sh
# Installs what pages are looked at with: a headless Chromium.
#
#   bin/install-browser.sh
#
# 1. If LOWMARK_BROWSER names one, or one is in the PATH, nothing is done.
# 2. As root: apt-get install.
# 3. Otherwise it says so, with status 1; the tests that need it are ignored then.
set -eu

say() { printf '%s\n' "$*" >&2; }

for program in ${LOWMARK_BROWSER:-} chromium chromium-browser google-chrome google-chrome-stable chrome; do
    if command -v "$program" > /dev/null; then
        say "$(command -v "$program") is there"
        exit 0
    fi
done
if [ "$(id -u)" -eq 0 ] && command -v apt-get > /dev/null; then
    apt-get update --quiet=2 >&2 || true
    if apt-get install --quiet=2 --yes --no-install-recommends chromium fonts-dejavu-core >&2; then
        exit 0
    fi
fi
say "install-browser: no Chromium, and it cannot be installed: pages are not looked at"
exit 1
