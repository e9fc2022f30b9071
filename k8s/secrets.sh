#!/bin/sh
# Prints the Secrets that k8s/ refers to, with new keys: once, before the first `kubectl apply -k`.
#   sh k8s/secrets.sh [--tls] FOLDER SYSTEM... | kubectl apply -n memdock -f -
# FOLDER is written and stays on your machine: keep space-keys.yaml, without which no space can be found again.
# SYSTEM: what stands behind the gateway, such as rag-dense rag-hybrid mem0.
# --tls: the gateway listens with the certificate of the Secret gateway-tls (overlays/production).
# From the environment, each of them "none" where it is not set:
#   DATABASE_URL   an external PostgreSQL, postgresql://user:password@host/name; else that of overlays/local
#   CHAT_KEY       the key of the meter's upstream
#   AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_DEFAULT_REGION AWS_ENDPOINT_URL_S3   the results' store
set -eu
umask 077
tls=
if [ "${1:-}" = --tls ]; then tls=1; shift; fi
if [ $# -lt 2 ]; then echo "usage: secrets.sh [--tls] FOLDER SYSTEM..." >&2; exit 2; fi
folder=$1; shift
for system in "$@"; do set -- "$@" --system "$system=grpc://$system:7470"; shift; done
memdock-gateway init "$folder" "$@" >&2
sed -i -e 's/^  grpc: 127\.0\.0\.1:/  grpc: 0.0.0.0:/' -e 's/^  http: 127\.0\.0\.1:/  http: 0.0.0.0:/' \
  -e 's|^audit_file: .*|audit_file: /audit/audit.jsonl|' "$folder/gateway.yaml"
if [ "$tls" ]; then
  sed -i 's|^  # tls: .*|  tls: {cert_file: /tls/tls.crt, key_file: /tls/tls.key}|' "$folder/gateway.yaml"
fi
memdock keys create --file "$folder/keys.json" --tenant evaluator > "$folder/evaluator.key"
python3 -c 'import secrets; print(secrets.token_urlsafe(24), end="")' > "$folder/postgres.password"

secret() {
  name=$1; shift
  kubectl create secret generic "$name" --dry-run=client -o yaml "$@"
  echo ---
}
secret gateway --from-file="$folder/gateway.yaml" --from-file="$folder/keys.json" --from-file="$folder/space-keys.yaml"
secret evaluator --from-file="$folder/keys.json" --from-file="$folder/evaluator.key"
secret stores --from-file=password="$folder/postgres.password" \
  --from-literal=pgvector.url="${DATABASE_URL:-postgresql://memdock:$(cat "$folder/postgres.password")@postgres:5432/memdock}"
secret models --from-literal=chat.key="${CHAT_KEY:-none}"
secret results --from-literal=AWS_ACCESS_KEY_ID="${AWS_ACCESS_KEY_ID:-none}" \
  --from-literal=AWS_SECRET_ACCESS_KEY="${AWS_SECRET_ACCESS_KEY:-none}" \
  --from-literal=AWS_DEFAULT_REGION="${AWS_DEFAULT_REGION:-us-east-1}" \
  ${AWS_ENDPOINT_URL_S3:+--from-literal=AWS_ENDPOINT_URL_S3="$AWS_ENDPOINT_URL_S3"}
