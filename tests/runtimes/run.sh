#!/bin/bash
# Runs a test program with the runtime that unpack.sh put into DIR:   run.sh DIR PROGRAM [ARGS...]
set -eu
dir=$1
shift
if [ ! -e "$dir/ready" ]; then
  echo "skipped: no runtime in $dir; tests/runtimes/unpack.sh could not get it from the Debian mirror"
  exit 77
fi
PATH=$dir/bin:$PATH exec "$@"
