#!/usr/bin/env bash
# The completions and the manual page that packages hold are what nodectl prints, and the tools take them.
# usage: generated.sh REPOSITORY NODECTL [--write]
set -euo pipefail
repository=$1 nodectl=$2 write=${3:-}
packaging=$repository/packaging
declare -A files=([bash]=completions/nodectl [zsh]=completions/_nodectl [fish]=completions/nodectl.fish [man]=man/nodectl-commands.8)
work=$(mktemp -d /tmp/nodectl-generated-XXXX)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "FAILED: $1"
  exit 1
}

for kind in "${!files[@]}"; do
  "$nodectl" completion "$kind" >"$work/$kind"
  [ -z "$write" ] || cp "$work/$kind" "$packaging/${files[$kind]}"
  diff -u "$packaging/${files[$kind]}" "$work/$kind" || fail "packaging/${files[$kind]} is old: $0 $repository $nodectl --write"
done

# In the shell, as it is packaged.
completes() {  # WORDS... WANTED: the last word is completed
  local wanted=${*: -1} got
  set -- "${@:1:$#-1}"
  got=$(bash -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _nodectl; echo "${COMPREPLY[*]}"' - "$work/bash" "$@")
  [ "$got" = "$wanted" ] || fail "bash completes '$*' to '$got', not '$wanted'"
}
completes nodectl comp completion
completes nodectl why p 'pod pvc'
completes nodectl why pod --sch --scheduler
completes nodectl tok token
bash -c 'source "$1"; complete -p nodectl' - "$work/bash" | grep -q '_nodectl nodectl$' || fail "bash does not know the completion"

# From groff and man, without a warning.
if command -v man >/dev/null; then
  LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l "$work/man" 2>"$work/warnings" >"$work/text"
  [ ! -s "$work/warnings" ] || fail "man warns: $(cat "$work/warnings")"
  grep -q 'nodectl why pod' "$work/text" || fail "the manual page has no nodectl why pod"
fi
