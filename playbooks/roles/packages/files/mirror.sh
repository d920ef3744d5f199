# Asks whether this host reaches a mirror of its package manager: mirror.sh FAMILY
# Prints nothing if one answers, or if that cannot be said, and else one phrase. Changes nothing on the host, and needs no root.
set -eu
export LC_ALL=C
helper=/usr/lib/apt/apt-helper # fetches as apt does: by its proxies, log-ins and certificates
[ "$1" = debian ] && [ -x $helper ] || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
lists=$(apt-get -q update --print-uris 2>/dev/null | sed -n "s|^'\([^']*/InRelease\)' .*|\1|p" | awk -F/ '!seen[$1 $3]++')
case $lists in "" | *file:* | *cdrom:* | *copy:*) exit 0 ;; esac

number=0
for list in $lists; do # one of each server
    number=$((number + 1))
    {
        timeout 15 $helper -q -o APT::Sandbox::User=root -o Acquire::Retries=0 -o Acquire::http::Timeout=5 \
            -o Acquire::https::Timeout=5 download-file "$list" "$work/$number" >"$work/$number.said" 2>&1 ||
            echo "E: Failed to fetch $list no answer within 15 s" >>"$work/$number.said"
        if [ -s "$work/$number" ] || grep -q ' 40[0-9] ' "$work/$number.said"; then : >"$work/answers"; fi
    } &
done
wait
[ ! -e "$work/answers" ] || exit 0
server=$(echo "$lists" | head -n 1 | sed 's|^[^/]*//\([^/]*@\)\{0,1\}\([^/]*\)/.*|\2|')
echo "no package mirror answers ($server: $(sed -n 's/^E: Failed to fetch [^ ]* *//p' "$work/1.said" | head -n 1))"
