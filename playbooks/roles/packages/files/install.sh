# Installs distribution packages on a host: install.sh FAMILY "PACKAGE..." "COMMAND..."
# Nothing happens where every COMMAND is there already, or every PACKAGE. Nothing is ever removed or upgraded on purpose.
# FLEETMARK_MIRROR: what mirror.sh said of the mirrors; if anything, only packages that lie in the host's cache are installed.
# FLEETMARK_WORK: the folder whose file "packages" records what was added, so that `fleetmark clean` removes nothing else.
# Prints "installed ..." or "present". The last line of standard error says what is wrong and what to do.
set -eu
family=$1 packages=$2 commands=$3 silent=${FLEETMARK_MIRROR:-}
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l

fail() { echo "$*" >&2; exit 1; }

present() { echo present; exit 0; }

# shellcheck disable=SC2086  # lists of words, throughout
have_commands() {
    [ -n "$commands" ] || return 1
    for c in $commands; do command -v "$c" >/dev/null || return 1; done
}

is_installed() {
    case $family in
        debian) [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ] ;;
        rhel | suse) rpm -q --whatprovides "$1" >/dev/null 2>&1 ;;
        alpine) apk info -e "$1" >/dev/null ;;
        arch) pacman -Q "$1" >/dev/null 2>&1 ;;
    esac
}

apt() { apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=2 "$@"; }

# shellcheck disable=SC2086
apt_install() { apt install -y --no-install-recommends --no-remove --no-upgrade ${silent:+--no-download} $missing; }

# Lists are refreshed only where what they say does not serve. Locks on lists, unlike dpkg's, are not waited for by apt-get.
apt_update() {
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
        said=$(apt update 2>&1) && return
        case $said in *"Could not get lock"*) sleep 5 ;; *) break ;; esac
    done
    echo "$said" >&2
}

# shellcheck disable=SC2086
install() {
    case $family in
        debian) apt_install || { [ -z "$silent" ] && apt_update && apt_install; } ;;
        rhel) "$(command -v dnf || command -v yum)" -y --setopt=install_weak_deps=False install $missing ;;
        suse) zypper --non-interactive install --no-recommends --no-force-resolution $missing ;;
        alpine) apk add --no-progress $missing ;;
        arch) pacman -S --noconfirm --needed $missing ;;
    esac
}

have_commands && present
case $family in
    debian | rhel | suse | alpine | arch) ;;
    *) fail "${commands:-$packages} is not on this host, and Fleetmark knows no package manager for its system (${family:-unknown}): install it by hand" ;;
esac
[ -n "$packages" ] || fail "$commands is in no package of this system ($family) that Fleetmark knows: install it by hand"
missing=
for p in $packages; do is_installed "$p" || missing="$missing $p"; done
missing=${missing# }
if [ -z "$missing" ]; then
    [ -z "$commands" ] || fail "$packages is installed, yet there is no command $commands: reinstall it on this host"
    present
fi
[ "$(id -u)" -eq 0 ] || fail "installing $missing needs root: run with --become, or install it on this host by hand"

listed() {
    case $family in
        rhel | suse) rpm -qa --qf '%{NAME}\n' ;;
        alpine) apk info -q ;;
        arch) pacman -Qq ;;
    esac | sort -u
}

# Records the packages that this installation added, also if it failed half-way: of apt those that dpkg selected for it, and of
# others those that are new and that the package manager named, since another installation may have ended meanwhile.
record() {
    [ -d "${FLEETMARK_WORK:-}" ] || return 0
    if [ "$family" = debian ]; then
        for p in $(echo "$said" | tr '\r' '\n' | sed -n 's/^Selecting previously [a-z]*selected package \(.*\)\.$/\1/p'); do
            action=purge
            case " $configured " in *" $p "*) action=remove ;; esac
            echo "debian $action $p"
        done
    else
        listed | while read -r p; do
            case "
$before
" in *"
$p
"*) continue ;; esac
            case $said in *"$p"*) echo "$family remove $p" ;; esac
        done
    fi >>"$FLEETMARK_WORK/packages"
}

before=
[ "$family" = debian ] || before=$(listed)
configured=  # removed packages whose configuration the host keeps
[ "$family" != debian ] || configured=$(dpkg-query -W -f '${binary:Package} ${db:Status-Status}\n' | sed -n 's/ config-files$//p' | tr '\n' ' ')
failed=
said=$(install 2>&1 </dev/null) || failed=1
record
if [ "$failed" ]; then
    echo "$said" >&2
    reason=$(echo "$said" | grep -E '^E: |^Error|No match|No package|not found|unable to select' | head -n 1)
    hint=
    [ "$family" = rhel ] && hint=" (some packages are in EPEL: dnf install epel-release)"
    fail "could not install $missing: ${silent:-${reason:-$(echo "$said" | tail -n 1)}}; install it on this host by hand$hint"
fi
[ -z "$commands" ] || have_commands || fail "$missing was installed, yet there is no command $commands: install it by hand"
echo "installed $missing"
