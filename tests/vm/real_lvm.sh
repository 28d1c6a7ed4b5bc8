#!/bin/sh
# As own_tmp.sh, for tests that are to use the machine's LVM instead of a fake.
# usage: real_lvm.sh PROGRAM [ARGS...]
# The machine has no udev: device-mapper makes the nodes of its devices itself.
export KEELSON_REAL_LVM=1 DM_DISABLE_UDEV=1
exec "$(dirname "$0")/own_tmp.sh" "$@"
