#!/bin/sh
# Makes the database at the first start, as the image's that this one stands for, and runs PostgreSQL.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb --username "$POSTGRES_USER" --pwfile "$POSTGRES_PASSWORD_FILE" --auth-local scram-sha-256 --auth-host scram-sha-256 > /dev/null
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
  [ "$POSTGRES_DB" = postgres ] || echo "CREATE DATABASE \"$POSTGRES_DB\"" | postgres --single postgres > /dev/null
fi
exec postgres -c listen_addresses='*' -c unix_socket_directories=/run/postgresql
