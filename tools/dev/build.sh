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

sources() { cd "$ROOT" && git ls-files '*.cc' '*.h' '*.c'; }

format_sources() { cd "$ROOT" && sources | grep -v '\.c$' | xargs clang-format -i; }

# run_tidy [TARGET...]
run_tidy() {
  (cd "$ROOT" && cmake --preset tidy >/dev/null && ninja -C build/tidy "$@")
}

run_check() {
  (cd "$ROOT" && sources | grep -v '\.c$' | xargs clang-format --dry-run -Werror) || die "run ./dev fmt"
  python3 "$ROOT/tests/lint/layer_law.py" "$ROOT"
  run_tidy
}
