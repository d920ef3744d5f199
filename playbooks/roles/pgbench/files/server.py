"""PostgreSQL in the current folder: server.py --half H --address A --port P --connections N --buffers BYTES -- BIN

From elsewhere only the account ``bench`` gets in, which owns the database ``bench`` and may do nothing else. It has no
password: whoever reaches the port can use that database while a case runs. The superuser has no
way in. The database stays for the next case, and goes with the folder.
"""

import os
import shutil
import signal
import subprocess
import sys

import load

ACCESS = "host bench bench all trust\n"

chosen = load.options(address=str, port=int, connections=int, buffers=int)
programs = chosen.command[0]
data = os.path.abspath("database")
settings = {
    "listen_addresses": chosen.address,
    "port": chosen.port,
    "unix_socket_directories": "",  # over TCP alone: the path of a socket may have no more than 107 bytes
    "max_connections": chosen.connections + 10,
    "shared_buffers": "%dkB" % (chosen.buffers // 1024),
}
server = [os.path.join(programs, "postgres"), "-D", data]
if not os.path.exists(os.path.join(data, "complete")):
    shutil.rmtree(data, ignore_errors=True)
    how = ["-D", data, "-U", "fleetmark", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]
    subprocess.run([os.path.join(programs, "initdb"), *how], stdout=subprocess.DEVNULL, check=True)
    with open(os.path.join(data, "pg_hba.conf"), "w") as file:
        file.write(ACCESS)
    orders = "CREATE ROLE bench LOGIN;\n\nCREATE DATABASE bench OWNER bench;\n"
    single = [server[0], "--single", "-j", "-D", data, "postgres"]
    ran = subprocess.run(single, input=orders.encode(), stdout=subprocess.DEVNULL, check=False)
    if ran.returncode:
        sys.exit("PostgreSQL could not be set up, exit status %d" % ran.returncode)
    os.close(os.open(os.path.join(data, "complete"), os.O_CREAT))
for name, value in settings.items():
    server += ["-c", "%s=%s" % (name, value)]
load.serve(server, stop=signal.SIGINT)  # its fast shutdown
