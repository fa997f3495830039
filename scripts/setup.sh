# Sourced by ./demo and ./test: what a new machine lacks.

# Installs the Debian packages that are missing and says so.
need_packages() {
    local missing=() p
    for p in "$@"; do
        dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing+=("$p")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "installing Debian packages: ${missing[*]}"
    local log
    log=$(mktemp)
    # Servers that a package brings must not start: eft runs its own.
    if ! { apt-get update && DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
        tail -20 "$log" >&2
        rm -f "$log"
        echo "cannot install packages; install these by hand: ${missing[*]}" >&2
        exit 1
    fi
    rm -f "$log"
}

build_release() {
    command -v cargo >/dev/null || { echo "a Rust toolchain is missing: see https://rustup.rs" >&2; exit 1; }
    command -v cc >/dev/null || need_packages gcc libc6-dev
    echo "building (release)"
    # The simulator, fuzz targets and checks are no part of what runs.
    cargo build --release -p eft -p eft-shim --quiet || exit 1
}
