"""Run nginx in the current folder, with one file of --size bytes: server.py --address A --port P --size N -- nginx"""

import os
import pwd
import signal

import load

CONFIGURATION = """
daemon off;
pid nginx.pid;
error_log stderr warn;
worker_processes %(workers)d;
%(user)s
events { worker_connections 16384; }
http {
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000000;
    open_file_cache max=16;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {
        listen %(address)s:%(port)d backlog=4096 reuseport;
        location = /file { root %(root)s; default_type application/octet-stream; }
        location / { return 404; }
    }
}
"""

chosen = load.options(address=str, port=int, size=int)
os.makedirs("site", exist_ok=True)
with open("site/file", "wb") as file:
    file.write(b"x" * chosen.size)
values = {
    "workers": len(os.sched_getaffinity(0)),
    # As root, nginx runs its workers under another account, which cannot read this folder.
    "user": "user %s;" % pwd.getpwuid(0).pw_name if os.geteuid() == 0 else "",
    "address": chosen.address,
    "port": chosen.port,
    "root": os.path.abspath("site"),
}
with open("nginx.conf", "w") as file:
    file.write(CONFIGURATION % values)
load.serve([*chosen.command, "-p", os.getcwd(), "-c", "nginx.conf", "-e", "stderr"], stop=signal.SIGINT)
