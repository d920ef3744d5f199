# Puts programs of distribution packages into DEST/bin without installing them: unpack.sh DEST "PACKAGE..." "PROGRAM..." PATH
# A package of a server would start that server, and at every boot again. So the programs that the host has (in PATH, a folder
# that the user names, or else among its commands) are linked; on Debian and its kin packages are unpacked below DEST where
# they are absent, with the libraries that the host lacks. Needs no root, and leaves the host's packages as they are.
# Prints "linked", "unpacked PACKAGE VERSION ..." or "present". The last line of standard error says what is wrong.
set -eu
export LC_ALL=C
dest=$1 packages=$2 programs=$3 given=$4
usual=$PATH:/usr/local/sbin:/usr/sbin:/sbin

fail() { echo "$*" >&2; exit 1; }

# Where a program lies: below a folder, or among the host's commands; PostgreSQL's are in a folder of their version.
below() { find "$1" \( -type f -o -type l \) -path '*bin/*' -name "$2" 2>/dev/null | sort -V | tail -n 1; }
on_host() {
    PATH=$usual command -v "$1" 2>/dev/null && return
    for folder in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin; do [ ! -x "$folder/$1" ] || echo "$folder/$1"; done | sort -V | tail -n 1
}

# link PLACE: DEST/bin has a link to each program as PLACE names it; nothing where one is absent.
link() {
    for program in $programs; do [ -n "$($1 "$program")" ] || return 1; done
    mkdir -p "$dest/bin"
    for program in $programs; do ln -sfn "$($1 "$program")" "$dest/bin/$program"; done
}
in_given() { [ ! -x "$given/$1" ] || echo "$given/$1"; }

complete=yes
for program in $programs; do [ -x "$dest/bin/$program" ] || complete=; done
[ -z "$complete" ] || { echo present; exit 0; }
if [ -n "$given" ]; then
    link in_given || fail "$given on this host does not hold all of $programs"
    echo linked
    exit 0
fi
link on_host && { echo linked; exit 0; }
for tool in apt-get dpkg-deb; do
    command -v $tool >/dev/null || fail "$programs is not on this host: install $packages by hand, or set path to the folder that holds it"
done

mkdir -p "$dest"
work=$(mktemp -d "$dest/.unpack.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work" # apt drops its rights while it downloads
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/root"
fresh="-o Dir::State::lists=$work/lists -o Dir::Cache=$work/cache -o Acquire::Languages=none"

# get OPTIONS: the packages and what they need that the host lacks, by apt's own reckoning.
get() {
    # shellcheck disable=SC2086  # words
    wanted=$(apt-get $1 -s -qq install --no-install-recommends $packages 2>>"$work/log" | awk '
        $1 == "Inst" { version = $3 ~ /^\[/ ? $4 : $3; sub(/^\(/, "", version); print $2 "=" version }')
    # shellcheck disable=SC2086
    [ -n "$wanted" ] && (cd "$work" && apt-get $1 -q download $wanted </dev/null >>"$work/log" 2>&1)
}
# The host's own lists serve mostly; where they are absent or too old, lists of our own.
# shellcheck disable=SC2086
silent=${FLEETMARK_MIRROR:-} # what mirror.sh said of the mirrors
# shellcheck disable=SC2086
{ [ -z "$silent" ] && { get "" || { apt-get $fresh -q update </dev/null >>"$work/log" 2>&1; get "$fresh"; }; }; } ||
    fail "could not fetch $packages: ${silent:-$(grep -hoE 'Failed to fetch.*|Could not.*|^E: .*|Unable to locate.*' "$work/log" | head -n 1)}; install it on this host by hand, or set path"

for file in "$work"/*.deb; do dpkg-deb -x "$file" "$work/root"; done
rm -rf "$dest/root" "$dest/bin"
mv "$work/root" "$dest/root"
mkdir "$dest/bin"
libraries=$(find "$dest/root" -name '*.so*' -exec dirname {} + | sort -u | tr '\n' ':')
for program in $programs; do
    file=$(below "$dest/root" "$program")
    file=${file:-$(on_host "$program")}
    [ -n "$file" ] || fail "$packages was unpacked, yet holds no $program: install it by hand, or set path"
    absent=$(LD_LIBRARY_PATH=$libraries ldd "$file" 2>/dev/null | grep -m 1 'not found') &&
        fail "$packages was unpacked, but $program does not start here: $absent"
    printf '#!/bin/sh\nLD_LIBRARY_PATH="%s$LD_LIBRARY_PATH" exec "%s" "$@"\n' "$libraries" "$file" >"$dest/bin/$program"
    chmod 755 "$dest/bin/$program"
done
# shellcheck disable=SC2086
echo "unpacked $(echo $wanted)"
