# Puts the programs of the distribution's lmbench package into DEST: fetch.sh DEST
# Installs nothing and leaves the host's apt as it is: the package lies in a component most hosts do not enable, so apt works
# here with sources, lists and caches of its own in a temporary folder. Needs no root.
# Prints "fetched VERSION" or "present". The last line of standard error says what is wrong and what to do.
set -eu
export LC_ALL=C
dest=$1
instead="or set lmbench.path to a folder on this host that holds lat_mem_rd"

fail() { echo "$*" >&2; exit 1; }

starts() { [ -x "$1" ] && "$1" 2>&1 </dev/null | grep -q '^Usage'; }

if starts "$dest/lat_mem_rd" && starts "$dest/lat_tcp"; then
    echo present
    exit 0
fi
for tool in apt-get dpkg-deb; do
    command -v $tool >/dev/null || fail "no lmbench package is known for this system: set lmbench.path to a folder on it that holds lat_mem_rd"
done

[ -z "${FLEETMARK_MIRROR:-}" ] || fail "could not fetch lmbench: $FLEETMARK_MIRROR; let the host reach its package mirror, $instead"

mkdir -p "$dest"
work=$(mktemp -d "$dest/.fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work" # apt drops its rights while it downloads
mkdir -p "$work/sources" "$work/lists/partial" "$work/cache/archives/partial" "$work/package"

# shellcheck source=/dev/null
. /etc/os-release
suite=${UBUNTU_CODENAME:-${VERSION_CODENAME:-}}
case " ${ID:-} ${ID_LIKE:-} " in
    *ubuntu*) component=multiverse ;;
    *) component=non-free ;;
esac

# write_sources COMPONENTS: the host's own entries for the release itself, with COMPONENTS instead of theirs.
write_sources() {
    rm -f "$work"/sources/*
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ -r "$file" ] || continue
        sed -n 's/#.*//; s/^[[:space:]]*deb[[:space:]]\{1,\}//p' "$file" | while read -r entry; do
            options=
            case $entry in "["*) options="${entry%%]*}] " entry=${entry#*]} ;; esac
            # shellcheck disable=SC2086  # words
            set -- $entry
            case " stable oldstable testing unstable sid $suite " in *" ${2:-/} "*) ;; *) continue ;; esac
            case " $* " in *" main "*) echo "deb $options$1 $2 $components" ;; esac
        done
    done >"$work/sources/own.list"
    for file in /etc/apt/sources.list.d/*.sources; do
        [ -r "$file" ] || continue
        sed '/^#/d' "$file"
        echo
    done | awk -v RS= -v FS='\n' -v suites="stable oldstable testing unstable sid $suite" -v components="$components" '
        BEGIN { n = split(suites, list, " "); for (i = 1; i <= n; i++) wanted[list[i]] = 1 }
        {
            kept = found = ""; off = is_deb = has_main = 0
            for (i = 1; i <= NF; i++) {
                if ($i !~ /^[ \t]/) { field = tolower($i); sub(/[ \t]*:.*/, "", field) }
                value = $i; if ($i !~ /^[ \t]/) sub(/^[^:]*:/, "", value)
                n = split(value, word, /[ \t]+/)
                for (j = 1; j <= n; j++) {
                    if (field == "types" && word[j] == "deb") is_deb = 1
                    if (field == "suites" && word[j] in wanted) found = found " " word[j]
                    if (field == "components" && word[j] == "main") has_main = 1
                    if (field == "enabled" && tolower(word[j]) ~ /^(no|false|off|0)$/) off = 1
                }
                if (field !~ /^(types|suites|components|enabled)$/) kept = kept $i "\n"
            }
            if (is_deb && has_main && !off && found != "")
                printf "Types: deb\n%sSuites:%s\nComponents: %s\n\n", kept, found, components
        }' >"$work/sources/own.sources"
}

cat >"$work/apt.conf" <<EOC
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$work/sources";
Dir::State::lists "$work/lists";
Dir::Cache "$work/cache";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::CNF::DefaultEnabled "false";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
EOC
# With a bundle, its packages are apt's only source, and this script leaves that as it is.
case ${APT_CONFIG:-} in */bundle/*) bundled=yes && : >"$work/apt.conf" ;; *) bundled= ;; esac
apt() { apt-get -q -c "$work/apt.conf" "$@" </dev/null >>"$work/said" 2>&1; }

# fetch COMPONENTS PACKAGE...: into $work, from sources of those components.
fetch() {
    components=$1
    shift
    [ -n "$bundled" ] || write_sources
    [ -n "$bundled" ] || grep -qs . "$work"/sources/* || fail "this host's apt sources have no entry for ${suite:-its release} with main:" \
        "put $component where apt finds it, $instead"
    apt update || echo "W: some source did not answer" >>"$work/said" # it may not matter: the download decides
    (cd "$work" && apt download "$@")
}

why() { grep -hoE 'Failed to fetch.*|Could not.*|^E: .*' "$work/said" | head -n 1; }

fetch "$component" lmbench || fail "could not fetch lmbench from $component of ${PRETTY_NAME:-this system}: $(why);" \
    "let the host reach its package mirror, $instead"
dpkg-deb -x "$work"/lmbench_*.deb "$work/package"
version=$(dpkg-deb -f "$work"/lmbench_*.deb Version)

mkdir -p "$work/programs"
for file in "$work"/package/usr/lib/lmbench/bin/*/*; do
    case $file in *.o | *.a | */lmbench) continue ;; esac
    mv "$file" "$work/programs/"
done
cp "$work/package/usr/share/doc/lmbench/copyright" "$work/programs/"

# The libraries a package needs that are neither on the host nor fetched yet.
libraries_of() {
    dpkg-deb -f "$1" Depends | tr ',' '\n' | sed -n 's/^ *\(lib[a-z0-9+.-]*\).*/\1/p' | grep -v -e '-dev$' | while read -r name; do
        case $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) in installed) continue ;; esac
        set -- "$work/libraries/${name}_"*.deb
        [ -e "$1" ] || echo "$name"
    done
}

# The host's own package lists know the libraries; on one that never had any (a fresh container), main is looked up as well.
get() {
    (cd "$work" && apt-get -q download "$@" </dev/null >>"$work/said" 2>&1) || fetch "main $component" "$@"
}

lacks() { ldd "$1" 2>/dev/null | grep -q 'not found'; }

# Where a library is missing on the host (libtirpc, which a few of the network programs are linked with), it comes along in
# DEST/lib, and a small script in front of those programs points them to it.
if lacks "$work/programs/lat_tcp"; then
    mkdir "$work/libraries"
    wanted=$(libraries_of "$work"/lmbench_*.deb)
    while [ -n "$wanted" ]; do
        # shellcheck disable=SC2086
        get $wanted || fail "could not fetch $wanted for lmbench: $(why); install it on this host by hand, $instead"
        set -- "$work"/lib*.deb
        mv "$@" "$work/libraries/"
        wanted=$(for file in "$@"; do libraries_of "$work/libraries/${file##*/}"; done | sort -u)
    done
    mkdir -p "$work/programs/lib" "$work/programs/linked"
    for file in "$work"/libraries/*.deb; do dpkg-deb -x "$file" "$work/package"; done
    find "$work/package" -name 'lib*.so.*' -exec cp -P {} "$work/programs/lib/" \;
    for file in "$work"/programs/*; do
        [ -f "$file" ] && lacks "$file" || continue
        name=${file##*/}
        mv "$file" "$work/programs/linked/$name"
        printf '#!/bin/sh\nLD_LIBRARY_PATH="%s/lib" exec "%s/linked/%s" "$@"\n' "$dest" "$dest" "$name" >"$file"
        chmod 755 "$file"
    done
fi

rm -rf "$dest/lib" "$dest/linked"
mv -f "$work"/programs/* "$dest/"
for program in lat_mem_rd lat_tcp; do
    starts "$dest/$program" || fail "lmbench $version was fetched, but $program does not start here:" \
        "$(ldd "$dest/$program" 2>&1 | grep -m 1 'not found' || "$dest/$program" 2>&1 | head -n 1); $instead"
done
echo "fetched $version"
