#!/bin/bash
# fleet.sh: real SSH hosts on one machine, out of namespaces. Needs root, iproute2, util-linux, openssh; nftables for loss.
#
#   fleet.sh up N                    N hosts, h1 to hN, at 10.77.TAG.1 and on; the machine itself is .254
#   fleet.sh down                    end this fleet and remove all it made
#   fleet.sh status                  a line per host: up or off
#   fleet.sh exec hN CMD...          run as root on the host, past SSH
#   fleet.sh off hN | on hN          power: all processes die at once; /tmp and /run are empty after, the rest stays
#   fleet.sh cut hN | heal hN        pull the network cable; put it back
#   fleet.sh cpu hN PCT [PERIOD_US]  CPU quota in per cent of one core, 0 for none (period 100 ms)
#   fleet.sh io hN B/S [MAJ:MIN]     rate limit of the disk under /srv for reads and for writes, 0 for none
#   fleet.sh rate hN RATE [BURST]    link rate both ways as tc writes it (1gbit), or off
#   fleet.sh loss hN PCT [output]    drop that part of the packets the host receives (or sends), 0 for none
#   fleet.sh lacks hN CMD...         remove commands from the host (its root is an overlay: nothing outside is touched)
#
# A host has its own network, mount, PID, UTS and IPC namespace, an overlay over the machine's root, /tmp, /root, /home,
# /opt, /mnt and /run of its own, a real-disk folder /srv, hostname, machine-id and sshd with host keys of its own.
# Fleets live side by side: each has a TAG (0 to 254), and every name it makes carries it.
#
# Environment: TAG (default 0); UPPER=tmpfs|disk, where the hosts' changes are kept (default tmpfs); HIDE, folders the
# hosts must not see; SHARE, folders that they share with this machine; OWNER, any word: down then spares a fleet that was brought up under another one; and, each
# derived from TAG, PREFIX, BR (bridge), FLEET (run folder), STATE (key, inventory, SSH configuration), DISK (data).
set -u
TAG=${TAG:-0}
PREFIX=${PREFIX:-10.77.$TAG}
BR=${BR:-brfm$TAG}
FLEET=${FLEET:-/run/fleetmark-fleet/$TAG}
STATE=${STATE:-/run/fleetmark-fleet/$TAG.state}
DISK=${DISK:-/var/tmp/fleetmark-fleet/$TAG}
UPPER=${UPPER:-tmpfs}
SELF=$(readlink -f "$0")
GROUP=fleetmark-$TAG # cgroup
KEY=$STATE/id_ed25519

die() { echo "fleet: $*" >&2; exit 1; }
number() { echo "${1#h}"; }
netns() { echo "fm$TAG-h$1"; }
link() { echo "fm${TAG}v$1"; } # the machine's end of host N's cable: at most 15 characters
known() { [ -e "$FLEET/$1.pid" ] || die "no host $1 in fleet $TAG"; }
alive() { kill -0 "$(cat "$FLEET/$1.pid")" 2>/dev/null; }
init_pid() { pgrep -o -P "$(cat "$FLEET/$1.pid")"; } # the child of unshare is the host's PID 1
settled() { # wait until a host's processes are gone, 4 s at most
    local _
    for _ in $(seq 200); do alive "$1" || return 0; sleep 0.02; done
    return 1
}

# Cgroups, v1 and v2. A machine that lends none still gets hosts, only no throttles.
v2() { [ -f /sys/fs/cgroup/cgroup.controllers ]; }
groups_of() { # the cgroup folders of a host, one a line
    local c
    if v2; then echo "/sys/fs/cgroup/$GROUP/$1"; return; fi
    for c in cpu cpuacct blkio; do [ -d /sys/fs/cgroup/$c ] && echo "/sys/fs/cgroup/$c/$GROUP/$1"; done
    return 0
}
group_make() {
    local c d
    for d in $(groups_of "$1"); do mkdir -p "$d" 2>/dev/null || return 0; done
    if v2; then # a controller reaches a child only where its parents hand it on
        for d in /sys/fs/cgroup "/sys/fs/cgroup/$GROUP"; do
            for c in cpu io; do echo "+$c" 2>/dev/null >"$d/cgroup.subtree_control"; done
        done
    fi
    return 0
}
group_join() {
    local d
    for d in $(groups_of "$1"); do
        if [ -w "$d/cgroup.procs" ]; then echo $BASHPID >"$d/cgroup.procs"; fi
    done
    return 0
}
group_file() { # FILE of host's cgroup, whichever controller has it
    local d
    for d in $(groups_of "$1"); do [ -f "$d/$2" ] && { echo "$d/$2"; return 0; }; done
    return 1
}

make_network() {
    local i=$1 ns veth
    ns=$(netns "$i") veth=$(link "$i")
    ip netns add "$ns" && ip link add "$veth" type veth peer name eth0 netns "$ns" &&
        ip link set "$veth" master "$BR" up && ip -n "$ns" -batch - <<E
link set lo up
link set eth0 address $(printf '02:77:00:%02x:%02x:%02x' "$TAG" $((i / 256)) $((i % 256)))
addr add $PREFIX.$i/24 dev eth0
link set eth0 up
E
}

start_host() {
    local i=$1 h=h$1
    mkdir -p "$FLEET/$h"
    (
        group_join "$h"
        exec setsid nsenter --net="/run/netns/$(netns "$i")" \
            unshare -m -u -i -p -f --kill-child=KILL --propagation private \
            env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TAG="$TAG" FLEET="$FLEET" \
            PREFIX="$PREFIX" UPPER="$UPPER" DISK="$DISK" STATE="$STATE" HIDE="${HIDE:-}" SHARE="${SHARE:-}" bash "$SELF" __init "$i"
    ) </dev/null >"$FLEET/$h.log" 2>&1 &
    echo $! >"$FLEET/$h.pid"
}

wait_host() {
    local i=$1 _
    for _ in $(seq 400); do
        (exec 3<>"/dev/tcp/$PREFIX.$i/22") 2>/dev/null && return 0
        alive "h$i" || return 1
        sleep 0.05
    done
    return 1
}

host_init() { # runs as PID 1 of the host
    local i=$1 h=h$1 d own root
    set -e
    own=$FLEET/$h
    [ "$UPPER" = tmpfs ] || own=$DISK/$h
    root=$own/root
    hostname "$h"
    mkdir -p "$own/upper" "$own/work" "$root"
    mount -t overlay overlay -o "lowerdir=/,upperdir=$own/upper,workdir=$own/work,xino=off" "$root"
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro sysfs "$root/sys"
    make_dev "$root/dev"
    for d in root home opt mnt var/tmp; do # folders the machine has things in: a host has its own, and keeps them
        mkdir -p "$own/kept/$d"
        mount --bind "$own/kept/$d" "$root/$d"
    done
    chmod 700 "$root/root"
    chmod 1777 "$root/var/tmp"
    mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
    mount -t tmpfs -o mode=755 tmpfs "$root/run"
    for d in ${HIDE:-}; do
        if [ -d "$root$d" ]; then mount -t tmpfs -o mode=755,ro tmpfs "$root$d"; fi
    done
    for d in ${SHARE:-}; do
        mkdir -p "$root$d"
        mount --bind "$d" "$root$d"
    done
    mkdir -p "$DISK/$h.data" "$root/srv"
    mount --bind "$DISK/$h.data" "$root/srv"
    configure "$i" "$root"
    cd "$root"
    mkdir -p mnt/old
    pivot_root . mnt/old
    cd /
    umount -l /mnt/old
    rmdir /mnt/old
    /usr/sbin/sshd
    trap 'exit 0' TERM
    set +e
    while :; do # bash reaps orphans, as PID 1 must
        sleep infinity &
        wait
    done
}

make_dev() {
    local dev=$1 node
    mount -t tmpfs -o mode=755 dev "$dev"
    mkdir "$dev/pts" "$dev/shm"
    for node in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9" "tty 5 0"; do
        set -- $node
        mknod -m 666 "$dev/$1" c "$2" "$3"
    done
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$dev/pts"
    mount -t tmpfs -o mode=1777 shm "$dev/shm"
    ln -s pts/ptmx "$dev/ptmx"
    ln -s /proc/self/fd "$dev/fd"
    for node in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${node%:*}" "$dev/${node#*:}"; done
}

configure() { # name, address book, keys and sshd of host $1 under root $2
    local i=$1 root=$2 h=h$1 d
    echo "$h" >"$root/etc/hostname"
    {
        echo "127.0.0.1 localhost"
        for d in $(seq "$(cat "$FLEET/n")"); do echo "$PREFIX.$d h$d"; done
    } >"$root/etc/hosts"
    printf '%08x%024x\n' $((0x77000000 + TAG)) "$i" >"$root/etc/machine-id"
    mkdir -p -m 755 "$root/run/sshd"
    rm -f "$root"/etc/ssh/ssh_host_* "$root"/etc/ssh/sshd_config.d/*
    install -m 600 "$STATE/hostkeys/$h" "$root/etc/ssh/ssh_host_ed25519_key"
    # Hosts trust one another, for mpirun and Slurm.
    mkdir -p -m 700 "$root/root/.ssh"
    cp "$KEY.pub" "$root/root/.ssh/authorized_keys"
    install -m 600 "$KEY" "$root/root/.ssh/id_ed25519"
    cp "$STATE/known_hosts" "$root/root/.ssh/known_hosts"
    [ -e "$root/etc/ssh/fleet_sshd" ] && return # a host that was off keeps its configuration
    touch "$root/etc/ssh/fleet_sshd"
    cat >"$root/etc/ssh/sshd_config" <<E
ListenAddress $PREFIX.$i
HostKey /etc/ssh/ssh_host_ed25519_key
UsePAM no
UseDNS no
PermitRootLogin prohibit-password
PasswordAuthentication no
MaxStartups 200:30:400
MaxSessions 100
PrintMotd no
AcceptEnv LANG LC_*
SetEnv OMP_WAIT_POLICY=passive
Subsystem sftp internal-sftp
PidFile /run/sshd.pid
E
}

cmd_up() {
    local n=$1 i
    [ "$n" -ge 1 ] && [ "$n" -le 250 ] || die "up takes 1 to 250 hosts"
    mkdir -p "$(dirname "$FLEET")" "$STATE/hostkeys" "$DISK" || exit 1
    mkdir "$FLEET" 2>/dev/null || { echo "fleet: fleet $TAG is up already" >&2; exit 3; } # mkdir is the claim: only one can have made it
    mount -t tmpfs -o mode=755 fleetmark-fleet "$FLEET" && mount --make-private "$FLEET" || exit 1
    echo "${OWNER:-}" >"$FLEET/owner"
    echo "$n" >"$FLEET/n"
    ssh-keygen -q -t ed25519 -N '' -C fleet -f "$KEY" </dev/null || die "cannot make a key in $STATE"
    : >"$STATE/known_hosts"
    for i in $(seq "$n"); do
        ssh-keygen -q -t ed25519 -N '' -C "h$i" -f "$STATE/hostkeys/h$i" </dev/null || die "cannot make a host key"
        echo "h$i,$PREFIX.$i $(cut -d' ' -f1,2 "$STATE/hostkeys/h$i.pub")" >>"$STATE/known_hosts"
    done
    ip link add "$BR" type bridge && ip addr add "$PREFIX.254/24" dev "$BR" && ip link set "$BR" up || die "no bridge"
    # All namespaces share one neighbour table: 64 hosts talking all-to-all overflow the default one.
    sysctl -qw net.ipv4.neigh.default.gc_thresh3=16384 net.ipv4.neigh.default.gc_thresh2=8192
    for i in $(seq "$n"); do
        group_make "h$i"
        make_network "$i" || die "no network for h$i"
        start_host "$i"
    done
    for i in $(seq "$n"); do wait_host "$i" || die "h$i did not come up: $(cat "$FLEET/h$i.log")"; done
    write_state "$n"
}

write_state() {
    local i
    {
        echo "[fleet]"
        for i in $(seq "$1"); do echo "h$i ansible_host=$PREFIX.$i"; done
        printf '\n[fleet:vars]\nansible_user=root\nansible_ssh_common_args=-F %s/ssh_config\n' "$STATE"
    } >"$STATE/hosts.ini"
    {
        for i in $(seq "$1"); do printf 'Host h%s\n  HostName %s\n' "$i" "$PREFIX.$i"; done
        printf 'Host *\n  User root\n  IdentityFile %s\n  IdentitiesOnly yes\n' "$KEY"
        printf '  UserKnownHostsFile %s/known_hosts\n  GlobalKnownHostsFile /dev/null\n' "$STATE"
        printf '  ConnectTimeout 60\n' # a busy machine is slow, not down
        printf '  StrictHostKeyChecking yes\n'
    } >"$STATE/ssh_config"
}

cmd_down() {
    local n i d
    [ -d "$FLEET" ] || return 0
    if [ -n "${OWNER:-}" ] && [ "$OWNER" != "$(cat "$FLEET/owner" 2>/dev/null)" ]; then return 0; fi
    n=$(cat "$FLEET/n" 2>/dev/null || echo 0)
    for i in $(seq "$n"); do [ -e "$FLEET/h$i.pid" ] && kill -KILL "$(cat "$FLEET/h$i.pid")" 2>/dev/null; done
    for i in $(seq "$n"); do
        [ -e "$FLEET/h$i.pid" ] && { settled "h$i" || echo "fleet: h$i will not die" >&2; }
        ip link del "$(link "$i")" 2>/dev/null
        ip netns del "$(netns "$i")" 2>/dev/null
    done
    ip link del "$BR" 2>/dev/null
    for i in $(seq "$n"); do for d in $(groups_of "h$i"); do group_remove "$d"; done; done
    for d in $(groups_of h1); do group_remove "$(dirname "$d")"; done
    umount -l "$FLEET" 2>/dev/null
    rm -rf --one-file-system "$FLEET" "$STATE" "$DISK"
}
group_remove() { # the kernel frees a cgroup a moment after its last process is gone
    local _
    for _ in $(seq 50); do
        [ -d "$1" ] || return 0
        rmdir "$1" 2>/dev/null && return 0
        sleep 0.02
    done
    echo "fleet: $1 stays behind" >&2
}

cmd_exec() {
    local h=$1 pid
    shift
    known "$h"
    pid=$(init_pid "$h") || die "$h is off"
    group_join "$h"
    exec nsenter -t "$pid" -m -u -i -n -p env -i HOME=/root LANG=C.UTF-8 \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

cmd_off() {
    known "$1"
    ip link set "$(link "$(number "$1")")" down # first the cable: a dead host says no goodbye
    kill -KILL "$(cat "$FLEET/$1.pid")" 2>/dev/null
    forget "$1"
    settled "$1" || die "$1 will not die"
}
forget() { # where the host was, so that whoever connects hears within 3 s that nobody is there
    ip neigh flush to "$PREFIX.$(number "$1")" dev "$BR" 2>/dev/null
    return 0
}

cmd_on() {
    known "$1"
    alive "$1" && die "$1 is on"
    ip link set "$(link "$(number "$1")")" up
    start_host "$(number "$1")"
    wait_host "$(number "$1")" || die "$1 did not come up: $(cat "$FLEET/$1.log")"
}

limits() { find "$FLEET"/$1.limits -type f 2>/dev/null; } # of a host, or of those that a pattern names
weigh() { # CPU weight of a host, and of its fleet where any of its hosts has a limit: first, or as usual
    local d file of
    for d in $(groups_of "$1"); do
        for file in "$d"/cpu.{weight,shares} "${d%/*}"/cpu.{weight,shares}; do
            [ -f "$file" ] || continue
            if [ "${file%/*}" = "$d" ]; then of=$1; else of='h*'; fi
            case ${file##*.}-$(limits "$of" | grep -q . && echo first) in
            weight-first) echo 10000 ;; shares-first) echo 262144 ;; weight-) echo 100 ;; shares-) echo 1024 ;;
            esac >"$file"
        done
    done
}
limited() { # HOST WHAT LIMIT NONE: a throttle alone shall decide, so what else runs on this machine yields to a host that has one
    mkdir -p "$FLEET/$1.limits"
    if [ "$3" = "$4" ]; then rm -f "$FLEET/$1.limits/$2"; else : >"$FLEET/$1.limits/$2"; fi
    weigh "$1"
}

cmd_cpu() {
    local h=$1 pct=$2 period=${3:-100000} file
    limited "$h" cpu "$pct" 0
    if file=$(group_file "$h" cpu.max); then
        if [ "$pct" -eq 0 ]; then echo "max $period"; else echo "$((period * pct / 100)) $period"; fi >"$file"
    elif file=$(group_file "$h" cpu.cfs_quota_us); then
        echo -1 >"$file" && echo "$period" >"${file%quota_us}period_us" || return 1
        if [ "$pct" -gt 0 ]; then echo $((period * pct / 100)) >"$file"; fi
    else
        die "this machine lends no CPU cgroup"
    fi
}

cmd_io() {
    local h=$1 rate=$2 dev=${3:-} file
    limited "$h" io "$rate" 0
    [ -n "$dev" ] || dev=$(findmnt -no MAJ:MIN -T "$DISK")
    if file=$(group_file "$h" io.max); then
        [ "$rate" -gt 0 ] || rate=max
        echo "$dev rbps=$rate wbps=$rate" >"$file"
    elif file=$(group_file "$h" blkio.throttle.read_bps_device); then
        echo "$dev $rate" >"$file" && echo "$dev $rate" >"${file/read/write}"
    else
        die "this machine lends no disk cgroup"
    fi
}

cmd_rate() {
    local i rate=$2 burst=${3:-256k} side
    i=$(number "$1")
    limited "$1" rate "$rate" off
    for side in "tc" "ip netns exec $(netns "$i") tc"; do
        local dev=eth0
        [ "$side" = tc ] && dev=$(link "$i")
        $side qdisc del dev "$dev" root 2>/dev/null
        [ "$rate" = off ] || $side qdisc add dev "$dev" root tbf rate "$rate" burst "$burst" latency 50ms || return 1
    done
}

cmd_loss() {
    local in rule="numgen random mod 100 < $2 drop"
    in="ip netns exec $(netns "$(number "$1")")"
    [ "$2" -lt 100 ] || rule=drop # nft knows no 100 of 100
    $in nft delete table inet fleetloss 2>/dev/null
    [ "$2" -eq 0 ] || $in nft -f - <<E
table inet fleetloss {
  chain lossy {
    type filter hook ${3:-input} priority 0;
    $rule
  }
}
E
}

case ${1:-} in
up) cmd_up "${2:?up N}" ;;
down) cmd_down ;;
__init) host_init "$2" ;;
status) for p in "$FLEET"/h*.pid; do [ -e "$p" ] || continue; h=$(basename "$p" .pid); alive "$h" && echo "$h up" || echo "$h off"; done ;;
exec) shift; cmd_exec "$@" ;;
off) cmd_off "$2" ;;
on) cmd_on "$2" ;;
cut) known "$2"; ip link set "$(link "$(number "$2")")" down; forget "$2" ;;
heal) known "$2"; ip link set "$(link "$(number "$2")")" up ;;
cpu) known "$2"; shift; cmd_cpu "$@" ;;
io) known "$2"; shift; cmd_io "$@" ;;
rate) known "$2"; shift; cmd_rate "$@" ;;
loss) known "$2"; shift; cmd_loss "$@" ;;
lacks) h=$2; shift 2; cmd_exec "$h" sh -c 'for c; do for d in $(echo "$PATH" | tr : " "); do rm -f "$d/$c"; done; done' sh "$@" ;;
*) sed -n '2,24s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
