"""Write the files on standard input (base64 of JSON of name to text) into DEST, in their order: install.py DEST"""

import base64
import json
import os
import sys

dest = sys.argv[1]
os.makedirs(dest, exist_ok=True)
for name, text in json.loads(base64.b64decode(sys.stdin.read()).decode()).items():
    part = os.path.join(dest, name + ".part")
    with open(part, "wb") as file:
        file.write(text.encode())
    os.chmod(part, 0o755)
    os.rename(part, os.path.join(dest, name))
