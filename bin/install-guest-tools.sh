#!/bin/sh
# Installs what guests need beside lowmark itself: QEMU for x86-64, and mkfs.xfs (xfsprogs) for machines with XFS.
#
#   bin/install-guest-tools.sh            apt-get install if root, else --private
#   bin/install-guest-tools.sh --private  unpacked into the cache, the machine stays as it is
#
# 1. What is there already, in the PATH or QEMU in the cache, is not installed.
# 2. As root: apt-get install.
# 3. Otherwise the packages that an installation would add are downloaded with apt-get and unpacked with
#    dpkg -x below ${XDG_CACHE_HOME:-~/.cache}/lowmark/qemu. A small script there, found by lowmark, starts
#    QEMU with its libraries and firmware. mkfs.xfs is not unpacked: without it guests have ext4 in place of XFS.
#
# Kernels come with `lowmark kernels fetch`; mke2fs (e2fsprogs) is on every Debian.
set -eu

package=qemu-system-x86
program=qemu-system-x86_64
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lowmark
home=$cache/qemu
private=no

say() { printf '%s\n' "$*" >&2; }
fail() { say "install-guest-tools: $*"; exit 1; }

for argument; do
    case $argument in
        --private) private=yes ;;
        -h | --help) sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 0 ;;
        *) fail "unknown argument $argument; there is --private" ;;
    esac
done

# mkfs.xfs, which can be done without.
install_xfs() {
    if PATH=$PATH:/usr/sbin:/sbin command -v mkfs.xfs > /dev/null; then
        return
    fi
    if [ "$private" = yes ] || [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
        say "no mkfs.xfs here: install xfsprogs, or guests have ext4 in place of XFS"
        return
    fi
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends xfsprogs ||
        say "xfsprogs cannot be installed: guests have ext4 in place of XFS"
}
install_xfs

if [ "$private" = no ] && command -v "$program" > /dev/null; then
    say "$(command -v "$program") is there"
    exit 0
fi
if [ -x "$home/$program" ] && "$home/$program" --version > /dev/null 2>&1; then
    say "$home/$program is there"
    exit 0
fi
command -v apt-get > /dev/null ||
    fail "no apt-get here: install QEMU for x86-64 with this system's own package manager"

if [ "$private" = no ] && [ "$(id -u)" = 0 ]; then
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "$package"
    exit 0
fi

# A simulated installation names what is missing on this machine, libraries included.
missing=$(apt-get --simulate --no-install-recommends install "$package" |
    sed -n 's/^Inst \([^ ]*\) .*/\1/p')
[ -n "$missing" ] || fail "apt-get knows no way to install $package; try apt-get update as root"

mkdir -p "$cache"
work=$(mktemp -d "$cache/.qemu.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$work/packages" "$work/files"
say "downloading: $(echo $missing)"
(cd "$work/packages" && apt-get download $missing > /dev/null) || fail "apt-get download failed"
for file in "$work"/packages/*.deb; do
    dpkg -x "$file" "$work/files"
done
[ -x "$work/files/usr/bin/$program" ] || fail "$package holds no $program"

# The script finds its place by itself, so that the cache can be moved.
cat > "$work/$program" << 'SCRIPT'
#!/bin/sh
home=$(dirname "$(readlink -f "$0")")
files=$home/files
libraries=
for directory in "$files"/usr/lib/*-linux-gnu "$files"/lib/*-linux-gnu; do
    [ -d "$directory" ] && libraries=$libraries${libraries:+:}$directory
    # libblas and the like live one level below.
    for below in "$directory"/*/; do
        [ -d "$below" ] && ls "$below"*.so* > /dev/null 2>&1 && libraries=$libraries:${below%/}
    done
done
LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
QEMU_MODULE_DIR=$(ls -d "$files"/usr/lib/*/qemu 2> /dev/null | head -n 1)
export QEMU_MODULE_DIR
exec "$files/usr/bin/qemu-system-x86_64" -L "$files/usr/share/qemu" -L "$files/usr/share/seabios" "$@"
SCRIPT
chmod +x "$work/$program"
rm -rf "$work/packages"
"$work/$program" --version > /dev/null || fail "the unpacked QEMU does not start"
rm -rf "$home"
chmod 755 "$work"
mv "$work" "$home"
say "$home/$program is ready: $("$home/$program" --version | head -n 1)"
