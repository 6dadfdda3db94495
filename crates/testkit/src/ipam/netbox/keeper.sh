# Runs PostgreSQL, Redis and NetBox in one directory until its input ends.
# $1: the directory. $2: the installed NetBox. $3: the dump. $4: the programs of PostgreSQL. $5: port of NetBox. $6: of Redis.
dir=$1 netbox=$2 dump=$3 bin=$4 port=$5 redis=$6
exec >"$dir/keeper.log" 2>&1
as=
if [ "$(id -u)" = 0 ]; then
    # PostgreSQL is never started by root.
    chmod 755 "$dir"
    mkdir "$dir/data"
    chown postgres "$dir" "$dir/data"
    as="setpriv --reuid postgres --regid postgres --init-groups"
fi
cd "$dir" || exit 1
$as "$bin/initdb" -D "$dir/data" --username=postgres --auth=trust --no-sync --encoding=UTF8 --locale=C.UTF-8 || exit 1
$as "$bin/postgres" -D "$dir/data" -k "$dir" -p 5432 -c listen_addresses= -c fsync=off -c synchronous_commit=off \
    -c full_page_writes=off >"$dir/database.log" 2>&1 </dev/null &
database=$!
redis-server --bind 127.0.0.1 --port "$redis" --save '' --dir "$dir" >"$dir/redis.log" 2>&1 </dev/null &
cache=$!
trap 'kill -s KILL $database $cache; rm -rf "$dir"' EXIT
tries=0
until "$bin/psql" -h "$dir" -U postgres -c 'SELECT 1' postgres >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || exit 1
    sleep 0.1
done
"$bin/createdb" -h "$dir" -U postgres netbox || exit 1
"$bin/pg_restore" -h "$dir" -U postgres -j2 -d netbox "$dump" || exit 1
# Its home is where it puts its sockets.
export NETBOX_ROOT="$netbox" PYTHONDONTWRITEBYTECODE=1 HOME="$dir"
export TEST_DATABASE_HOST="$dir" TEST_DATABASE_PORT=5432 TEST_REDIS_PORT="$redis"
serve() {
    while [ ! -e "$dir/over" ]; do
        if [ -e "$dir/stopped" ]; then
            sleep 0.1
        else
            "$netbox/env/bin/gunicorn" --bind "127.0.0.1:$port" --workers 3 --threads 2 --timeout 120 --preload \
                --graceful-timeout 5 --pid "$dir/gunicorn.pid" netbox.wsgi >>"$dir/gunicorn.log" 2>&1 </dev/null
        fi
    done
}
serve &
server=$!
read -r _
touch "$dir/over"
kill -s KILL $server
[ -f "$dir/gunicorn.pid" ] && kill -s KILL "$(cat "$dir/gunicorn.pid")"
