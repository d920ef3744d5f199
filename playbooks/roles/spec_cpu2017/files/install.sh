# Installs SPEC CPU from STORE/medium (an ISO image, or a tar of one or of its contents) into STORE/installed/tree:
#   install.sh STORE BENCHMARK RELEASE
# Needs no root where bsdtar, xorriso or 7z is there. STORE/complete comes last; what was begun before is begun again.
# The last line of standard error says what is wrong and what to do.
set -eu
export LC_ALL=C
store=$1 benchmark=$2 release=$3
tree=$store/installed/tree work=$store/work
mounted=

fail() { echo "$*" >&2; exit 1; }

clean() {
    [ -z "$mounted" ] || umount "$mounted" 2>/dev/null || umount -l "$mounted" || true
    chmod -R u+w "$work" 2>/dev/null || true
    rm -rf "$work"
}
trap clean EXIT
clean
rm -rf "$store/complete" "$store/installed"
mkdir -p "$work/image" "$work/tar" "$store/installed"

is_iso() { [ "$(dd if="$1" bs=1 skip=32769 count=5 2>/dev/null)" = CD001 ]; }

empty() { [ -z "$(ls -A "$work/image")" ]; }

# Each way is tried in turn: a tool may be there and yet not know this image, or not be allowed to mount.
unpack_iso() {
    ! command -v bsdtar >/dev/null || bsdtar -xf "$1" -C "$work/image" || true
    if empty && command -v xorriso >/dev/null; then
        xorriso -osirrox on:auto_chmod_on -indev "$1" -extract / "$work/image" 2>&1 | tail -n 3 >&2 || true
    fi
    if empty && command -v 7z >/dev/null; then 7z x -y "-o$work/image" "$1" >/dev/null || true; fi
    if empty && [ "$(id -u)" -eq 0 ] && mount -o loop,ro "$1" "$work/image"; then mounted=$work/image; fi
    empty && fail "nothing on this host unpacks an ISO image: apt-get install libarchive-tools (bsdtar; dnf install bsdtar)," \
        "or run as root where it may mount one"
    # 7z loses what is executable; a copy of ours may have it all.
    [ -n "$mounted" ] || chmod -R u+rwx "$work/image"
}

medium=$store/medium
if ! is_iso "$medium"; then
    tar -xf "$medium" -C "$work/tar" ||
        fail "the medium is neither an ISO image nor a tar that this host's tar can read: give the file as SPEC offers it"
    rm -f "$medium"
    iso=$(find "$work/tar" -name '*.iso' -type f | head -n 1)
    if [ -n "$iso" ]; then
        unpack_iso "$iso"
        rm -f "$iso"
    else
        rmdir "$work/image"
        mv "$work/tar" "$work/image"
    fi
else
    unpack_iso "$medium"
fi
script=$(find "$work/image" -maxdepth 2 -name install.sh -type f | head -n 1)
[ -n "$script" ] || fail "the medium holds no install.sh: is it SPEC CPU $release?"

log=$store/install.log
if ! (cd "$(dirname "$script")" && sh ./install.sh -f -d "$tree") </dev/null >"$log" 2>&1; then
    why=$(grep -iE 'error|fail|cannot|not found|no space|mismatch' "$log" | tail -n 1)
    fail "install.sh of the medium failed: ${why:-$(tail -n 1 "$log")} (all it said: $log on this host)"
fi
[ -r "$tree/shrc" ] && [ -x "$tree/bin/runcpu" ] ||
    fail "install.sh ended well, yet there is no $tree/bin/runcpu (all it said: $log on this host)"
[ -d "$tree/benchspec/CPU/$benchmark" ] ||
    fail "the medium is not SPEC CPU $release (it has no $benchmark): use the workload of its own release"
rm -f "$store/medium"
: >"$store/complete"
