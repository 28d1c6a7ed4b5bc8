# Configure and compile.

configure() {
  step "configuring ($KEELSON_PRESET)"
  mkdir -p "$BUILD"
  (cd "$ROOT" && cmake --preset "$KEELSON_PRESET") >"$BUILD/configure.log" 2>&1 || {
    tail -n 30 "$BUILD/configure.log" >&2
    die "cmake failed; see $BUILD/configure.log"
  }
}

build() {
  [ -f "$BUILD/build.ninja" ] || configure
  step "compiling ($KEELSON_PRESET; the first time takes some minutes)"
  # ninja's status line goes to the terminal only; in a log a line a minute is enough.
  if [ -t 1 ]; then
    ninja -C "$BUILD" "$@"
  else
    NINJA_STATUS='[%f/%t] ' ninja -C "$BUILD" "$@" >"$BUILD/ninja.log" 2>&1 &
    local ninja=$! waited=0
    while kill -0 $ninja 2>/dev/null; do
      sleep 1
      waited=$((waited + 1))
      [ $((waited % 60)) -ne 0 ] || step "  $(tail -n 1 "$BUILD/ninja.log" | cut -c1-100)"
    done
    wait $ninja || { grep -E -A 12 'FAILED|error:' "$BUILD/ninja.log" | tail -n 60 >&2; die "the build failed; see $BUILD/ninja.log"; }
  fi
}

build_docs() {
  deps_install
  (cd "$ROOT" && mkdocs build --quiet --strict)
  step "documentation: $ROOT/build/site/index.html"
}

sources() { cd "$ROOT" && git ls-files '*.cc' '*.h' '*.c'; }

format_sources() { cd "$ROOT" && sources | grep -v '\.c$' | xargs clang-format -i; }

# run_tidy [--all]: clang-tidy on the sources that changed since KEELSON_BASE (default: tidy_base), for at most
# KEELSON_TIDY_MINUTES (default: 6), or on all. Nothing is compiled but what protoc writes.
run_tidy() {
  local base what minutes=${KEELSON_TIDY_MINUTES:-6}
  base=${KEELSON_BASE:-$(tidy_base)}
  what=(--since "$base")
  if [ "${1:-}" = --all ]; then
    what=(--all)
    minutes=${KEELSON_TIDY_MINUTES:-600}
  elif [ "$base" = "$(git -C "$ROOT" rev-parse HEAD)" ]; then
    what=(--all)  # a clone without history has no changes to go by
  fi
  build keelson_generated
  step "clang-tidy ${what[*]}, for at most $minutes minutes"
  python3 "$ROOT/tests/lint/tidy.py" "$ROOT" "$BUILD" "${what[@]}" --minutes "$minutes" || die "clang-tidy: see above"
}

# The commit that the work began at: where it left origin/main; on main itself, the last one a day older than the head.
tidy_base() {
  local head base
  head=$(git -C "$ROOT" rev-parse HEAD)
  base=$(git -C "$ROOT" merge-base HEAD origin/main 2>/dev/null) || base=$head
  [ "$base" != "$head" ] || base=$(git -C "$ROOT" rev-list -1 --before=$(($(git -C "$ROOT" log -1 --format=%ct) - 86400)) HEAD)
  [ -n "$base" ] || base=$(git -C "$ROOT" rev-list --max-parents=0 HEAD | tail -n 1)
  echo "$base"
}

# Seconds; what CI begins with.
run_lint() {
  # Debian 12's clang-format decides: others lay out the same settings otherwise.
  if clang-format --version | grep -q ' 14\.'; then
    step "format"
    (cd "$ROOT" && sources | grep -v '\.c$' | xargs clang-format --dry-run -Werror) || die "run ./dev fmt"
  else
    step "format is not checked: that takes clang-format 14"
  fi
  step "lint"
  local lint failed=
  for lint in layer_law rooms braces controller_words coverage; do
    python3 "$ROOT/tests/lint/$lint.py" "$ROOT" || failed=1
  done
  [ -z "$failed" ] || die "see tests/lint"
}

run_check() {
  run_lint
  run_tidy "$@"
}
