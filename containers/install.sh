#!/bin/sh
# Fills the environment of an image, /opt/memdock; used by the Dockerfiles while they build.
#   install.sh pinned FILE [MORE]   what FILE pins, from /wheels where all of it is there, else from the package index;
#                                   then what MORE pins without hashes
#   install.sh own FOLDER           the distribution in FOLDER and those of ours that it needs, built here
set -eu
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

case $1 in
pinned)
  python -m venv --without-pip /opt/memdock # it gets no pip: what is in it stays as it is
  python -m venv --without-pip /opt/build
  for pair in "/opt/build requirements/build.txt" "/opt/memdock $2"; do
    pip="python -m pip --python ${pair% *}/bin/python install --quiet --no-deps --require-hashes --find-links /wheels"
    $pip --no-index -r "${pair#* }" 2>/dev/null || $pip -r "${pair#* }"
  done
  [ -z "${3:-}" ] || python -m pip --python /opt/memdock/bin/python install --quiet --find-links /wheels -r "$3"
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
  ;;
esac
