#include "cni/lib/linger.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "cni/lib/link_removal.h"

namespace keelson::cni {
namespace {

// The kernel frees deleted objects in the background, within about 15 ms. Closing a socket earlier makes
// the kernel flush that work while it holds the lock that every other transaction needs.
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
    (void)!::read(ends[0], &byte, 1);  // returns when the parent ends
    ::poll(nullptr, 0, kKernelFreesMs);
    ::_exit(0);
  }
  ::close(ends[0]);
  if (child < 0) ::close(ends[1]);  // otherwise it stays open until this process ends
}

}  // namespace keelson::cni
