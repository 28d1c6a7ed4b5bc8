#!/bin/bash
# Checks the Vagrantfile: by Vagrant where it is installed, and by Ruby with a stub of its language.
# usage: run.sh VAGRANTFILE
set -euo pipefail
command -v ruby >/dev/null || { echo "skipped: ruby is not installed"; exit 77; }
ruby "$(dirname "$0")/check.rb" "$1"
! command -v vagrant >/dev/null || (cd "$(dirname "$1")" && vagrant validate --ignore-provider)
