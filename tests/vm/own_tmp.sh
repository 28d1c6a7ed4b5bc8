#!/bin/sh
# Runs a program with a file system of its own in /var/tmp: the machine's root is an overlay, on whose files loop devices fail.
# usage: own_tmp.sh PROGRAM [ARGS...]
mount -t tmpfs tmp /var/tmp
exec "$@"
