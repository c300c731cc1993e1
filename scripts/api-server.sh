# Sourced by scripts that test the API of a running server: builds and starts it, and stops it at the end.
# After `start_server`, `address` and `token` are how to reach it, and `folder` is a temporary folder.

# With one small test beside it, cargo builds it with the features that the tests use: after the tests it is there already.
cargo build --quiet --workspace --locked --bin everbell --test peers
target=$(cargo metadata --format-version 1 --no-deps --offline | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')

# Installs the Python packages of a requirements file beside the build output, and again when the file changes.
# `tools` is the environment.
install_tools() {
    local requirements=$1
    tools=$target/$(basename "$requirements" .txt)-tools
    if cmp --silent "$requirements" "$tools/installed.txt"; then return; fi
    rm -rf "$tools"
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check --requirement "$requirements"
    cp "$requirements" "$tools/installed.txt"
}

folder=$(mktemp -d)
server=
finish() {
    local code=$?
    if [[ -n $server ]]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    if ((code != 0)); then
        echo "the last lines of the server's log:" >&2
        tail -n 20 "$folder/log" >&2 || true
    fi
    rm -rf "$folder"
    exit "$code"
}
trap finish EXIT

# Starts a server with the configuration in `$folder/everbell.toml`.
start_server() {
    # A configured token cannot be revoked by a request.
    token="evb_$(head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n')"
    (cd "$folder" && EVERBELL_ADMIN_TOKEN=$token exec "$target/debug/everbell" serve --listen 127.0.0.1:0) \
        >"$folder/greeting" 2>"$folder/log" &
    server=$!
    for _ in $(seq 100); do
        if grep -q '^  jobs ' "$folder/greeting"; then break; fi
        if ! kill -0 "$server" 2>/dev/null; then
            echo "error: the server did not start" >&2
            exit 1
        fi
        sleep 0.1
    done
    address=$(sed -n 's,.*listening on \(http://[^ ]*\).*,\1,p' "$folder/greeting")
}

# Fails if the server logged an error.
expect_clean_log() {
    if grep -E '"level":"ERROR"| ERROR ' "$folder/log"; then
        echo "error: the server logged an error" >&2
        exit 1
    fi
}
