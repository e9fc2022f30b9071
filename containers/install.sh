#!/bin/sh
# Fills the environment of an image, /opt/memdock; used by the Dockerfiles while they build.
#   install.sh tools                what builds our distributions, in /opt/build, which no image gets
#   install.sh pinned FILE [MORE]   what FILE pins, from /wheels where all of it is there, else from the package index;
#                                   then what MORE pins without hashes
#   install.sh source ADAPTER       what the adapter's source.txt pins, where it has one: from a clone in /sources/ADAPTER
#                                   where there is one, else from its address
#   install.sh own FOLDER           the distribution in FOLDER and those of ours that it needs, built here
set -eu
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

install_pinned() { # ENVIRONMENT FILE [OPTION]...
  environment=$1 file=$2
  shift 2
  pip="python -m pip --python $environment/bin/python install --quiet --no-deps --require-hashes --find-links /wheels $*"
  $pip --no-index -r "$file" 2>/dev/null || $pip -r "$file"
}

case $1 in
tools)
  python -m venv --without-pip /opt/build
  install_pinned /opt/build requirements/build.txt --no-compile
  ;;
pinned)
  python -m venv --without-pip /opt/memdock # it gets no pip: what is in it stays as it is
  install_pinned /opt/memdock "$2"
  [ -z "${3:-}" ] || python -m pip --python /opt/memdock/bin/python install --quiet --find-links /wheels -r "$3"
  ;;
source)
  [ -f "adapters/$2/source.txt" ] || exit 0
  if ! command -v git >/dev/null; then # it holds what was fetched to the commit; the image does not get it
    { apt-get -qq update && apt-get -qq install -y --no-install-recommends git ca-certificates; } >/dev/null 2>&1 ||
      { echo "git is needed to fetch the source of $2, and cannot be installed: use a BASE_IMAGE that has it" >&2; exit 69; }
  fi
  [ ! -d "/sources/$2" ] || export "MEMDOCK_$(echo "$2" | tr a-z- A-Z_)_SOURCE=/sources/$2"
  python adapters/environment.py "$2" --source /build/source ||
    { echo "for an image: put that clone in containers/sources/$2" >&2; exit 69; }
  # Its own pins are wider than what the adapter uses of it: requirements.txt has that.
  python -m pip --python /opt/memdock/bin/python wheel --quiet --no-deps --no-build-isolation -w /build/fetched /build/source
  ;;
own)
  own=$2
  grep -q '"memdock\[' "$2/pyproject.toml" && own="$own proto"
  grep -q '"memdock-embedder"' "$2/pyproject.toml" && own="$own services/embedder"
  for folder in $own; do
    (cd "$folder" && /opt/build/bin/python -m hatchling build -t wheel -d /build/own)
  done
  python -m pip --python /opt/memdock/bin/python install --quiet --no-index --no-deps /build/own/*.whl
  python -m pip --python /opt/memdock/bin/python check
  [ ! -d /build/fetched ] || python -m pip --python /opt/memdock/bin/python install --quiet --no-index --no-deps /build/fetched/*.whl
  ;;
esac
