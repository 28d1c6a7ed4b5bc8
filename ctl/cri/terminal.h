// The terminal of exec and attach: raw mode, sizes, keys that detach.
#pragma once

#include <termios.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/fd.h"

namespace keelson::ctl {

// Raw mode of standard input. The end of this object, and SIGTERM, SIGHUP and SIGQUIT before it, give the terminal its
// own mode back. At most one lives at a time.
class RawTerminal {
 public:
  // kInvalid: "input is not a terminal".
  static Result<RawTerminal> Enter();
  RawTerminal(RawTerminal&& other) noexcept : entered_(std::exchange(other.entered_, false)) {}
  RawTerminal(const RawTerminal&) = delete;
  ~RawTerminal();

 private:
  RawTerminal() = default;
  bool entered_ = true;
};

struct TerminalSize {
  uint16_t columns = 0, rows = 0;
};
TerminalSize SizeOfTerminal();

// Finds ctrl-p ctrl-q in input, which detaches.
class DetachKeys {
 public:
  // What to pass on of `input`. A ctrl-p at its end waits for the key after it.
  std::string Filter(std::string_view input);
  bool detached() const { return detached_; }

 private:
  bool pressed_ = false, detached_ = false;
};

// Reads standard input and tells of changes of the terminal's size, until Stop() or the end of input.
class InputReader {
 public:
  InputReader();
  struct Events {
    std::function<bool(std::string_view bytes)> on_input;  // false: no more
    std::function<void()> on_end, on_resize;
  };
  void Run(const Events& events, bool read_input);  // blocks
  void Stop();                                      // any thread

 private:
  UniqueFd stop_;
};

}  // namespace keelson::ctl
