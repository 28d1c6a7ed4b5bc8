#include "cni/lib/linger.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "cni/lib/link_removal.h"

namespace keelson::cni {
namespace {

// The kernel frees what was deleted in the background, in some 15 ms. A socket that is closed sooner makes
// it hurry while it holds the lock that every other transaction needs.
constexpr int kKernelFreesMs = 100;

}  // namespace

void CloseSocketsInChild() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  pid_t child = ::fork();
  if (child == 0) {
    LetGoOfStandardStreams();
    ::close(ends[1]);
    char byte;
    (void)!::read(ends[0], &byte, 1);  // ends when the parent does
    ::poll(nullptr, 0, kKernelFreesMs);
    ::_exit(0);
  }
  ::close(ends[0]);
  if (child < 0) ::close(ends[1]);  // else it stays open for as long as this process lives
}

}  // namespace keelson::cni
