#!/usr/bin/env bash
# Makes a container engine answer: one that runs already, else dockerd, which is installed where it is missing.
# Ends with 3 and a sentence where none can be had here. What was started is in the file $1, by its process id.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin
socket=/var/run/docker.sock log=/tmp/memdock-dockerd.log
answers() { docker version >/dev/null 2>&1; }
none() { echo "no container engine: $*"; exit 3; }

if answers; then exit 0; fi
[ -z "${DOCKER_HOST:-}" ] || none "nothing answers at DOCKER_HOST"
[ "$(id -u)" = 0 ] || none "none answers, and only root can start one"
if ! command -v dockerd >/dev/null || ! command -v iptables >/dev/null; then
  command -v apt-get >/dev/null || none "none is installed, and there is no apt-get"
  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
    docker.io iptables iproute2 </dev/null >/dev/null; } || none "docker.io cannot be installed"
fi
# A daemon that was killed leaves the number of its process; dockerd refuses to start while any process has it.
for file in /var/run/docker.pid /var/run/docker/containerd/containerd.pid; do
  if [ -s "$file" ] && ! readlink "/proc/$(tr -dc 0-9 <"$file")/exe" 2>/dev/null | grep -qE '/(dockerd|containerd)$'; then
    rm -f "$file"
  fi
done
grep -qE ' /sys/fs/cgroup(/[^ ]*)? cgroup2? ' /proc/mounts || mount -t cgroup2 none /sys/fs/cgroup ||
  none "there are no control groups here"
setsid nohup dockerd -H "unix://$socket" --log-level warn >>"$log" 2>&1 </dev/null &
daemon=$!
for _ in $(seq 300); do
  if answers; then
    echo "$daemon" >"$1"
    exit 0
  fi
  kill -0 "$daemon" 2>/dev/null || break
  sleep 0.2
done
tail -n 5 "$log"
none "dockerd does not start here; its log is $log"
