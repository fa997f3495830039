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

# Fetches a Debian source package, without Debian's changes, into target/sources, where it stays. The machine's own lists of
# packages are left as they are.
need_source() { # name
    local folder=target/sources/$1 work
    [ -d "$folder" ] && return 0
    echo "fetching the sources of $1"
    work=$(mktemp -d)
    mkdir -p target/sources "$work/lists" "$work/unpacked"
    apt-get indextargets --format 'deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' | grep -v -e -security | sort -u >"$work/sources.list"
    local apt=(apt-get -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$work/lists"
        -o APT::Sandbox::User=root)
    if (cd "$work" && "${apt[@]}" update && "${apt[@]}" source --download-only "$1") >"$work/log" 2>&1 &&
        tar -xf "$work"/*.orig.tar.* -C "$work/unpacked" --strip-components=1; then
        mv "$work/unpacked" "$folder"
    else
        tail -5 "$work/log" >&2
        echo "cannot fetch the sources of $1: tests of it will fail" >&2
    fi
    rm -rf "$work"
}

need_compilers() {
    command -v cargo >/dev/null || { echo "a Rust toolchain is missing: see https://rustup.rs" >&2; exit 1; }
    command -v cc >/dev/null || need_packages gcc libc6-dev
}

build_release() {
    need_compilers
    echo "building (release)"
    # The simulator, fuzz targets and checks are no part of what runs.
    cargo build --release -p eft -p eft-shim --quiet || exit 1
}
