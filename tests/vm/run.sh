#!/bin/bash
# Runs one test program under Debian's own kernel, in an emulated machine. That kernel has what many test machines
# lack: cgroup v2 with all controllers, ESP, WireGuard, IPVS, bridges that filter VLANs. The machine's root file system is
# the VM's, read-only under a RAM disk, so programs run as they were built.
#
# usage: run.sh PROGRAM [GTEST_FILTER [RUNNER]]      needs qemu-system-x86, busybox-static, kmod and apt's sources
#        KEELSON_VM_SECONDS: how long it may take (600); KEELSON_VM_MODULES: loaded beside those that all tests have;
#        KEELSON_VM_PACKAGES: Debian packages that are unpacked, not installed, for the machine's PATH
#        RUNNER, where there is one, is called with the program and its arguments: ../systemd/run.sh
set -euo pipefail
program=$(realpath "$1")
filter=${2:-*}
runner=${3:+$(realpath "$3")}
seconds=${KEELSON_VM_SECONDS:-600}
dir=${KEELSON_VM_DIR:-/var/tmp/keelson-vm}
mkdir -p "$dir" && cd "$dir"

if ! ls root/boot/vmlinuz-* >/dev/null 2>&1; then
  package=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
  apt-get download "$package"
  dpkg -x "$package"_*.deb root
fi
version=$(basename root/lib/modules/*)
depmod -b root "$version"

for package in ${KEELSON_VM_PACKAGES:-}; do
  [ ! -e "packages/$package" ] || continue
  apt-get download "$package"
  dpkg -x "$package"_*.deb packages
  touch "packages/$package"
done

rm -rf initrd && mkdir -p initrd/bin initrd/proc initrd/sys initrd/dev initrd/lower initrd/root initrd/modules
cp "$(command -v busybox)" initrd/bin/busybox
number=10
for module in virtio_pci 9pnet_virtio 9p overlay; do
  for file in $(modprobe -d root -S "$version" --show-depends "$module" | sed 's/^insmod //'); do
    ls initrd/modules/*-"$(basename "$file")" >/dev/null 2>&1 && continue
    cp "$file" "initrd/modules/$number-$(basename "$file")"
    number=$((number + 1))
  done
done
cat >initrd/init <<INIT
#!/bin/busybox sh
alias b=/bin/busybox
b mount -t proc proc /proc; b mount -t sysfs sys /sys; b mount -t devtmpfs dev /dev
for m in /modules/*; do b insmod \$m; done
b mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 root /lower
b mkdir /ram; b mount -t tmpfs ram /ram; b mkdir /ram/upper /ram/work
b mount -t overlay -o lowerdir=/lower,upperdir=/ram/upper,workdir=/ram/work overlay /root
for d in proc sys dev; do b mount --move /\$d /root/\$d; done
exec /bin/busybox switch_root /root /bin/sh $dir/inside.sh  # in a chroot, who enters a container sees its outside
INIT
chmod +x initrd/init
(cd initrd && find . | busybox cpio -o -H newc 2>/dev/null | gzip >../initrd.gz)

cat >inside.sh <<INSIDE
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mount -t tmpfs tmp /run; mkdir -p /run/netns /run/lock /lib/modules
mount -t tmpfs tmp /tmp  # a runtime's overlays cannot be on top of another one
if [ -n "${KEELSON_VM_PACKAGES:-}" ]; then
  mkdir /run/packages; mount --bind $dir/packages /run/packages  # runners may cover where they are
  export PATH=\$PATH:/run/packages/usr/sbin:/run/packages/sbin
  export LD_LIBRARY_PATH=/run/packages/usr/lib/x86_64-linux-gnu:/run/packages/lib/x86_64-linux-gnu
fi
mkdir -p /dev/pts /dev/shm; mount -t devpts devpts /dev/pts; mount -t tmpfs shm /dev/shm
mount -t cgroup2 cgroup2 /sys/fs/cgroup
for controller in \$(cat /sys/fs/cgroup/cgroup.controllers); do echo +\$controller >/sys/fs/cgroup/cgroup.subtree_control; done
mount --bind $dir/root/lib/modules /lib/modules
for m in esp4 esp6 xfrm_user gcm ctr seqiv wireguard vxlan veth bridge 8021q ifb nf_tables nft_masq ip_vs ip_vs_rr dummy ${KEELSON_VM_MODULES:-}; do modprobe \$m; done
ip link set lo up
# Into files of the host's: on the console the kernel writes into the midst of others' lines, and what waits there to be
# sent when the power goes is lost.
mkdir /run/out; mount -t 9p -o trans=virtio,version=9p2000.L out /run/out
export KEELSON_SYSTEMD_SECONDS=$((seconds - 60))
$runner $program --gtest_color=no --gtest_filter='$filter' >/run/out/output 2>&1 </dev/null
echo \$? >/run/out/status
sync; echo o >/proc/sysrq-trigger; while :; do :; done  # nothing can be read any more, not even sleep(1)
INSIDE

rm -rf out && mkdir out && touch out/output
# no_timer_check: on a busy machine the kernel takes the emulated timer for broken.
ended=0
timeout "$seconds" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 2G -nodefaults \
  -nographic -serial stdio -no-reboot -kernel root/boot/vmlinuz-"$version" -initrd initrd.gz \
  -append "console=ttyS0 quiet panic=-1 no_timer_check" \
  -virtfs local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap \
  -virtfs local,path="$dir/out",mount_tag=out,security_model=none >console 2>&1 </dev/null || ended=$?

fail() {
  echo "--- the machine's console"
  tr -d '\r' <console
  echo "--- failed: $1"
  exit 1
}
cat out/output
if [ ! -s out/status ]; then
  [ $ended = 124 ] || fail "the machine ended before the tests did, and qemu with status $ended"
  fail "the tests had not ended after $seconds s"
fi
[ "$(cat out/status)" = 0 ] || fail "the tests ended with status $(cat out/status)"
# A filter that fits nothing, or tests that skip, prove nothing.
grep -q '^\[  PASSED  \] [1-9]' out/output || fail "no test has run"
! grep -q '^\[  SKIPPED \]' out/output || fail "tests were skipped"
