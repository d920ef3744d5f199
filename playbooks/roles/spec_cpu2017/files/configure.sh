# Makes DEST ready: configure.sh DEST TREE CONFIG RUN, the config file's text on standard input, RUN the text of DEST/run.
# CONFIG is its name: fleetmark.cfg, or user.cfg for one that is not to be touched. DEST/run comes last.
set -eu
dest=$1 tree=$2 config=$3
mkdir -p "$dest"
ln -sfn "$tree" "$dest/tree"
cat >"$dest/$config"
printf '%s' "$4" >"$dest/.run"
chmod 755 "$dest/.run"
mv "$dest/.run" "$dest/run"
