#!/usr/bin/env bash
# Makes the image $1, a stand-in for python:3.11-slim-bookworm where no image registry answers: Debian 12 with its
# Python. Nothing to do where it is there. Needs root, and Debian's packages.
set -euo pipefail
tag=$1
! docker image inspect "$tag" >/dev/null 2>&1 || exit 0
command -v debootstrap >/dev/null || {
  apt-get -qq update
  DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends debootstrap >/dev/null
}
mirror=$(awk '/^URIs:/ {print $2; exit}' /etc/apt/sources.list.d/debian.sources 2>/dev/null || true)
work=$(mktemp -d)
trap 'umount "$work" 2>/dev/null || true; rm -rf "$work"' EXIT
mount -t tmpfs -o size=2g,exec,dev,suid tmpfs "$work" # dpkg writes each file through; in memory that takes no time
root=$work/root
debootstrap --variant=minbase --include=python3,python3-venv,python3-pip,ca-certificates bookworm "$root" \
  ${mirror:+"$mirror"} >"$work/log" 2>&1 || { tail -n 20 "$work/log"; exit 1; }
rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/* "$root"/usr/share/{doc,man,info,locale} \
  "$root"/etc/{hostname,resolv.conf} "$root"/usr/lib/python3.11/EXTERNALLY-MANAGED
ln -s ../../bin/python3 "$root/usr/local/bin/python"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" # whom this machine trusts, for downloads in a build
tar -C "$root" --numeric-owner --exclude=./dev --exclude='./proc/*' --exclude='./sys/*' -c . | docker import \
  -c 'ENV PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin LANG=C.UTF-8 PIP_CERT=/etc/ssl/certs/ca-certificates.crt' \
  -c 'CMD ["python3"]' - "$tag" >/dev/null
