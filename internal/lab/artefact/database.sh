#!/bin/sh
# The entrypoint of the database's image: makes the database where there is none yet, as a blank data disk has none, and runs it.
# POSTGRES_HOST_AUTH_METHOD is how clients on the network say who they are.
set -eu
PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
: "${PGDATA:=/var/lib/postgresql/data}"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
	initdb --pgdata="$PGDATA" --username=postgres --auth=trust --no-sync --no-locale --encoding=UTF8
	echo "host all all all ${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}" >>"$PGDATA/pg_hba.conf"
fi
exec postgres -D "$PGDATA" -c listen_addresses='*' -c unix_socket_directories=/tmp -c shared_buffers=16MB "$@"
