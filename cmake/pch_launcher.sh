#!/bin/sh
# Compiles a precompiled header and writes HEADER.gch.sum beside it: what ccache takes in its place
# (ccache(1), CCACHE_PCH_EXTSUM). Hashing the header itself, 200 MB, for every file that uses it costs a sixth of
# a build; and its bytes differ from checkout to checkout, while the sum here is of what went into it.
# usage: pch_launcher.sh SOURCE_DIR COMPILER ARGS...
set -eu
source_dir=$1
shift
"$@"
out= deps= want=
for arg; do
  case $want in
    o) out=$arg ;;
    MF) deps=$arg ;;
  esac
  want=
  case $arg in -o) want=o ;; -MF) want=MF ;; esac
done
case $out in
  *.gch)
    {
      "$1" --version
      for arg; do printf '%s\n' "$arg"; done
      # The header that CMake writes names a file by its whole path.
      sed -e 's/^[^:]*://' -e 's/\\$//' "$deps" | tr -s ' ' '\n' | sed '/^$/d' | xargs cat
    } | sed "s|$source_dir||g" | sha256sum >"$out.sum"
    ;;
esac
