#!/bin/sh
# Runs eft in an 8-vCPU guest under software emulation: bulk park of 7 CPUs against one by cgroup v2, and P-states from
# an ACPI table that QEMU hands to the guest. Takes some minutes; not part of the quick tests.
#
# usage: run.sh [EFT-BINARY]
#   EFT_QEMU_KERNEL  a kernel image (Debian: vmlinuz of linux-image-*-cloud-amd64, 6.12 from backports);
#                    otherwise the newest in /boot
#   EFT_QEMU_ROUNDS  rounds of the benchmark (20)
#   EFT_QEMU_THREADS  load in the guest (0, as in the paper: eight emulated CPUs share the cores of the host)
# Says "skipped: ..." and ends with 0 where something is not installed.
set -eu

here=$(dirname "$(readlink -f "$0")")
eft=${1:-$here/../../../../target/release/eft}
rounds=${EFT_QEMU_ROUNDS:-20}

skip() { echo "skipped: $1"; exit 0; }
command -v qemu-system-x86_64 >/dev/null || skip "QEMU is not installed (Debian: qemu-system-x86)"
command -v cpio >/dev/null || skip "cpio is not installed"
busybox=$(command -v busybox) || skip "busybox is not installed (Debian: busybox-static)"
[ -x "$eft" ] || skip "$eft is not built (cargo build --release -p eft)"
kernel=${EFT_QEMU_KERNEL:-$(ls -v /boot/vmlinuz-* 2>/dev/null | tail -n 1)}
[ -n "$kernel" ] && [ -r "$kernel" ] || skip "no kernel image: set EFT_QEMU_KERNEL"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
root=$work/root
mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/run" "$root/tmp"
cp "$busybox" "$root/bin/busybox"
cp "$eft" "$root/bin/eft"
# The libraries that the binary names, and the loader.
for library in $(ldd "$eft" | grep -o '/[^ )]*'); do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
done

cat > "$root/init" <<GUEST
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -t tracefs trace /sys/kernel/tracing
echo "EFT-GUEST \$(uname -r), \$(nproc) CPUs"
export EFT_MANAGED=1-7
echo "EFT-BEGIN acpi"; eft cpu acpi --json; echo "EFT-END acpi"
echo "EFT-BEGIN park"; eft cpu park 1-3 --observe 100; eft cpu | head -n 6; eft cpu unpark 1-3; echo "EFT-END park"
echo "EFT-BEGIN bench"; eft bench reconfigure --json --threads ${EFT_QEMU_THREADS:-0} --ways park --rounds $rounds; echo "EFT-STATUS \$?"; echo "EFT-END bench"
echo "EFT-BEGIN after"; cat /sys/devices/system/cpu/online; ls -d /sys/fs/cgroup/*/ 2>/dev/null; echo "EFT-END after"
poweroff -f
GUEST
chmod +x "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) > "$work/initrd"

tables=""
if command -v iasl >/dev/null; then
    iasl -p "$work/states" "$here/states.asl" > "$work/iasl.log" 2>&1 || { cat "$work/iasl.log"; exit 1; }
    tables="-acpitable file=$work/states.aml"
fi

# Without cmpxchg16b: the emulation of Debian 12 (QEMU 7.2) gets its flags wrong, and the kernel dies of it.
# shellcheck disable=SC2086
timeout "${EFT_QEMU_TIMEOUT:-900}" qemu-system-x86_64 -accel tcg,thread=multi -smp 8 -m 1024 -nographic -no-reboot -cpu qemu64,-cx16 $tables \
    -kernel "$kernel" -initrd "$work/initrd" -append "console=ttyS0 quiet panic=-1" < /dev/null > "$work/log" 2>&1 || true
tr -d '\r' < "$work/log" > "$work/text"
[ -n "${EFT_QEMU_LOG:-}" ] && cp "$work/text" "$EFT_QEMU_LOG"
part() { sed -n "/^EFT-BEGIN $1\$/,/^EFT-END $1\$/p" "$work/text" | sed '1d;$d'; }
grep '^EFT-GUEST' "$work/text" || { echo "the guest did not start:"; tail -n 30 "$work/text"; exit 1; }
part park
part bench > "$work/bench.json"
grep -q '^EFT-STATUS 0$' "$work/bench.json" || { cat "$work/bench.json"; echo "the benchmark failed"; exit 1; }
sed -i '/^EFT-STATUS/d' "$work/bench.json"

# The medians, in the order of the rows: one, bulk, one-by-one.
awk '
    /"which":/ { which = $2; gsub(/[",]/, "", which) }
    /"leave":/ { leave = 1 }
    /"back":/ { leave = 0 }
    /"call_us":/ { call = 1 }
    /"edge_us":/ { call = 0 }
    /"median":/ && call { value = $2; sub(/,/, "", value); median[which, leave] = value; call = 0 }
    END {
        ratio = median["bulk", 1] / median["one", 1]
        printf "park: one %.0f us, seven in bulk %.0f us (%.2f times), one by one %.0f us\n", \
            median["one", 1], median["bulk", 1], ratio, median["one-by-one", 1]
        printf "unpark: one %.0f us, seven in bulk %.0f us, one by one %.0f us\n", median["one", 0], median["bulk", 0], median["one-by-one", 0]
        exit !(ratio < 1.5)
    }' "$work/bench.json" || { echo "a bulk park of 7 CPUs costs 1.5 times that of one or more"; exit 1; }
[ "$(part after)" = "0-7" ] || { echo "not as before: $(part after)"; exit 1; }
if [ -n "$tables" ]; then
    part acpi | grep -q '"frequency_mhz": 1600' || { part acpi; echo "the table's P-states are not seen"; exit 1; }
    echo "P-states of the ACPI table are seen in the guest"
fi
