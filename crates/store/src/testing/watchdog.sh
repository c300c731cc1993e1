# Stops the server in the folder $1 and removes the folder, some seconds after the last process that needs it is gone.
folder=$1
idle_seconds=5
trap '' HUP INT

exec 8>>"$folder/watchdog.lock" || exit
flock -w 2 8 || exit

server_pid() { head -n 1 "$folder/server/data/postmaster.pid" 2>/dev/null; }

stop_server() {
    pid=$(server_pid)
    [ -n "$pid" ] || return
    # Nothing in there is worth a tidy end.
    kill -QUIT "$pid" 2>/dev/null
    tries=100
    while [ $tries -gt 0 ] && kill -0 "$pid" 2>/dev/null; do
        sleep 0.1
        tries=$((tries - 1))
    done
}

idle=0
while [ -e "$folder/users.lock" ]; do
    sleep 1 8>&-
    if flock -n "$folder/users.lock" true; then idle=$((idle + 1)); else idle=0; fi
    [ $idle -ge $idle_seconds ] || continue
    # The last look, with the door closed: whoever comes now waits, and then finds no folder.
    exec 7>>"$folder/start.lock" || exit
    flock 7
    if flock -n "$folder/users.lock" true; then
        stop_server
        rm -rf "$folder"
        exit
    fi
    exec 7>&-
    idle=0
done
