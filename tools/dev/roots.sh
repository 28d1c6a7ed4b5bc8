# Root file systems below build/packages/roots that builds and tests share. Needs nothing of the other parts.
#
# Whoever holds the lock of DIR/../NAME.lock exclusively makes the root; whoever works with one that may be replaced holds it shared.

root_ready() { [ -e "$1/.keelson-ready" ] && [ "$(cat "$1/.keelson-ready")" = "$2" ]; }

# root_once DIR KEY COMMAND...: makes DIR unless it was made with the same KEY. COMMAND fills the empty directory that is its last
# argument, under the lock; only when that has succeeded the directory gets its name. Otherwise DIR stays as it was, and the result is
# COMMAND's.
root_once() {
  local dir=$1 key=$2
  shift 2
  ! root_ready "$dir" "$key" || return 0
  mkdir -p "$(dirname "$dir")"
  (
    flock 9
    ! root_ready "$dir" "$key" || exit 0
    # Of one that was killed.
    rm -rf --one-file-system "$dir.new" "$dir.old" && mkdir "$dir.new" || exit 1
    "$@" "$dir.new" 9>&- || {
      code=$?
      rm -rf --one-file-system "$dir.new"
      exit $code
    }
    printf '%s\n' "$key" >"$dir.new/.keelson-ready" || exit 1
    [ ! -e "$dir" ] || mv -T "$dir" "$dir.old" || exit 1
    mv -T "$dir.new" "$dir" || exit 1
    rm -rf --one-file-system "$dir.old"
  ) 9>"$dir.lock"
}
