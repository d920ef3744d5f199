#!/bin/sh
# Stands in for the install.sh of SPEC's medium: install.sh [-f] -d DEST. Lays out a tree whose runcpu is runcpu.py.
# Asks whether all is right unless -f is given, as SPEC's does.
here=$(cd "$(dirname "$0")" && pwd)
dest='' sure=
while getopts d:u:e:f option; do
    case $option in
        d) dest=$OPTARG ;;
        f) sure=yes ;;
        u | e) ;;
        *) exit 1 ;;
    esac
done
[ -n "$dest" ] || { echo "Please say where to install, with -d"; exit 1; }
echo "Installing FROM $here"
echo "Installing TO $dest"
if [ -z "$sure" ]; then
    echo "Is this correct? (Please enter 'yes' or 'no')"
    read -r sure
    [ "$sure" = yes ] || { echo "Installation not performed."; exit 1; }
fi
case $dest in *" "*) echo "The destination must not contain spaces"; exit 1 ;; esac
mkdir -p "$dest/bin" "$dest/config/flags" "$dest/Docs"
for number in $(seq 200); do : >"$dest/Docs/$number.html"; done # many files, as a real tree has
if cat "$here/install_archives/standin.json" /etc/spec_standin.json 2>/dev/null | grep -q '"install": "fail"'; then
    echo "Unpacking benchmark and data files"
    echo "Checking the integrity of your source tree..."
    echo "Package integrity check failed! The file benchspec/CPU/505.mcf_r/src/mcf.c does not match"
    exit 1
fi
"$here/tools/unpack.sh" "$here/install_archives" "$dest" || { echo "tools/unpack.sh cannot be run"; exit 1; }
cp "$here/shrc" "$dest/shrc"
echo "Installation successful.  Source the shrc or cshrc in"
echo "$dest"
