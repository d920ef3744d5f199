#!/bin/sh
# Unpacks the stand-in's kit: unpack.sh ARCHIVES DEST
set -e
cp "$1/standin.json" "$2/standin.json"
cp "$1/specconfig.py" "$1/specreports.py" "$2/bin/"
cp "$1/runcpu.py" "$2/bin/runcpu"
chmod 755 "$2/bin/runcpu"
python3 - "$2" <<'EOP'
import json, os, sys
tree = sys.argv[1]
with open(os.path.join(tree, "standin.json")) as file:
    suites = json.load(file)["suites"]
for names in suites.values():
    for name in names:
        os.makedirs(os.path.join(tree, "benchspec", "CPU", name))
EOP
