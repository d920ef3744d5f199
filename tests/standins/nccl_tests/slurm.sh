# Makes a test host a node of a Slurm cluster, without systemd: slurm.sh CONTROLLER NODES, such as h1 h[1-2]
set -eu
controller=$1 nodes=$2
mkdir -p /run/munge /var/log/munge /var/lib/munge /etc/munge /etc/slurm "/var/spool/slurm/$(hostname)"
head -c 1024 /dev/zero | tr '\0' k >/etc/munge/munge.key # no secret: these hosts hear nobody else
chown -R munge /run/munge /var/log/munge /var/lib/munge /etc/munge
chmod 600 /etc/munge/munge.key
setpriv --reuid munge --regid munge --clear-groups /usr/sbin/munged --force
echo CgroupPlugin=cgroup/v1 >/etc/slurm/cgroup.conf
cat >/etc/slurm/slurm.conf <<X
ClusterName=test
SlurmctldHost=$controller
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
StateSaveLocation=/var/spool/slurm
SlurmdSpoolDir=/var/spool/slurm/%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.%n.pid
ReturnToService=2
KillWait=2
MpiDefault=none
SlurmdParameters=config_overrides
NodeName=$nodes CPUs=4 State=UNKNOWN
PartitionName=all Nodes=$nodes Default=YES State=UP OverSubscribe=FORCE
X
for file in /usr/lib/*/pmix2/lib/libpmix.so.2; do # Slurm looks for it by the name that only the development package gives it
    ln -sfn libpmix.so.2 "${file%.2}"
done
[ "$(hostname)" != "$controller" ] || /usr/sbin/slurmctld
/usr/sbin/slurmd -N "$(hostname)"
