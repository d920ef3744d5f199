"""Run PostgreSQL in the current folder: server.py --half H --address A --port P --connections N --buffers BYTES -- BIN

Only the account ``bench`` can connect over the network. It owns the database ``bench`` and has no other rights. It has
no password, so anyone who can reach the port can use that database while a case runs. The superuser cannot connect.
The database stays for the next case, and is removed with the folder.

PostgreSQL refuses to run as root. If this process is root, the programs run as nobody, who owns the database. Their
only capability is to read everything, because the programs and the database lie in folders of root. access(2) respects
it because of the secure bit no_setuid_fixup.
"""

import os
import pwd
import shutil
import signal
import subprocess
import sys

import load

ACCESS = "host bench bench all trust\n"


def unprivileged():
    """Return the user id and group id of nobody, and the words before a command that runs as nobody."""
    nobody = pwd.getpwnam("nobody")
    ids = ["--reuid=%d" % nobody.pw_uid, "--regid=%d" % nobody.pw_gid, "--clear-groups"]
    capabilities = ["--%s-caps=-all,+dac_read_search" % kind for kind in ("inh", "ambient")]
    return nobody.pw_uid, nobody.pw_gid, ["setpriv", "--securebits=+no_setuid_fixup", *ids, *capabilities]


chosen = load.options(address=str, port=int, connections=int, buffers=int)
programs = chosen.command[0]
data = os.path.abspath("database")
settings = {
    "listen_addresses": chosen.address,
    "port": chosen.port,
    "unix_socket_directories": "",  # TCP only, because the path of a socket is limited to 107 bytes
    "max_connections": chosen.connections + 10,
    "shared_buffers": "%dkB" % (chosen.buffers // 1024),
}
uid, gid, prefix = unprivileged() if os.geteuid() == 0 else (-1, -1, [])
server = [*prefix, os.path.join(programs, "postgres"), "-D", data]
if not os.path.exists(os.path.join(data, "complete")):
    shutil.rmtree(data, ignore_errors=True)
    os.mkdir(data, 0o700)
    os.chown(data, uid, gid)
    options = ["-D", data, "-U", "fleetmark", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]
    ran = subprocess.run([*prefix, os.path.join(programs, "initdb"), *options], stdout=subprocess.DEVNULL, check=False)
    if ran.returncode:
        sys.exit(ran.returncode)  # initdb has printed the reason
    with open(os.path.join(data, "pg_hba.conf"), "w") as file:
        file.write(ACCESS)
    orders = "CREATE ROLE bench LOGIN;\n\nCREATE DATABASE bench OWNER bench;\n"
    single = [*prefix, os.path.join(programs, "postgres"), "--single", "-j", "-D", data, "postgres"]
    ran = subprocess.run(single, input=orders.encode(), stdout=subprocess.DEVNULL, check=False)
    if ran.returncode:
        sys.exit("PostgreSQL could not be set up, exit status %d" % ran.returncode)
    os.close(os.open(os.path.join(data, "complete"), os.O_CREAT))
for name, value in settings.items():
    server += ["-c", "%s=%s" % (name, value)]
load.serve(server, stop=signal.SIGINT)  # SIGINT requests PostgreSQL's fast shutdown
