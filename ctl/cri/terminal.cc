#include "ctl/cri/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

namespace keelson::ctl {
namespace {

constexpr char kCtrlP = 0x10, kCtrlQ = 0x11;
constexpr size_t kPiece = 32 << 10;

termios g_own_mode;           // while a RawTerminal lives
int g_resized[2] = {-1, -1};  // a pipe that the handler of SIGWINCH writes to

void RestoreAndDie(int signal) {
  ::tcsetattr(STDIN_FILENO, TCSANOW, &g_own_mode);
  ::raise(signal);  // SA_RESETHAND: the default action now
}

void NoteResize(int) {
  const int saved = errno;
  [[maybe_unused]] const ssize_t written = ::write(g_resized[1], "w", 1);
  errno = saved;
}

void Handle(int signal, void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

Result<RawTerminal> RawTerminal::Enter() {
  if (!::isatty(STDIN_FILENO) || ::tcgetattr(STDIN_FILENO, &g_own_mode) != 0) {
    return Error(Code::kInvalid, "input is not a terminal");
  }
  for (const int signal : {SIGTERM, SIGHUP, SIGQUIT}) {
    Handle(signal, RestoreAndDie, static_cast<int>(SA_RESETHAND | SA_NODEFER));
  }
  termios raw = g_own_mode;
  ::cfmakeraw(&raw);
  if (::tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) != 0) return ErrnoError("set the terminal to raw mode");
  return RawTerminal();
}

RawTerminal::~RawTerminal() {
  if (!entered_) return;
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &g_own_mode);
  for (const int signal : {SIGTERM, SIGHUP, SIGQUIT}) Handle(signal, SIG_DFL, 0);
}

TerminalSize SizeOfTerminal() {
  winsize size{};
  if (::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) != 0) return {};
  return {size.ws_col, size.ws_row};
}

std::string DetachKeys::Filter(std::string_view input) {
  std::string out;
  for (const char key : input) {
    if (detached_) break;
    if (pressed_ && key == kCtrlQ) {
      detached_ = true;
    } else {
      if (pressed_) out += kCtrlP;
      pressed_ = key == kCtrlP;
      if (!pressed_) out += key;
    }
  }
  return out;
}

InputReader::InputReader() : stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (g_resized[0] < 0 && ::pipe2(g_resized, O_CLOEXEC | O_NONBLOCK) == 0) {
    Handle(SIGWINCH, NoteResize, SA_RESTART);
  }
}

void InputReader::Run(const Events& events, bool read_input) {
  for (;;) {
    pollfd waits[] = {
        {stop_.get(), POLLIN, 0}, {g_resized[0], POLLIN, 0}, {read_input ? STDIN_FILENO : -1, POLLIN, 0}};
    if (::poll(waits, 3, -1) < 0 && errno != EINTR) return;
    if (waits[0].revents != 0) return;
    if (waits[1].revents != 0) {
      char drained[64];
      while (::read(g_resized[0], drained, sizeof(drained)) > 0) {
      }
      if (events.on_resize) events.on_resize();
    }
    if (waits[2].revents == 0) continue;
    char piece[kPiece];
    const ssize_t got = ::read(STDIN_FILENO, piece, sizeof(piece));
    if (got < 0 && errno == EINTR) continue;
    if (got > 0) {
      read_input = events.on_input({piece, static_cast<size_t>(got)});
      continue;
    }
    read_input = false;
    if (events.on_end) events.on_end();
  }
}

void InputReader::Stop() { ::eventfd_write(stop_.get(), 1); }

}  // namespace keelson::ctl
