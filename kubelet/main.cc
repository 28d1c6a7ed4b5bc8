#include "kubelet/services.h"
#include "lib/event/loop.h"
#include "lib/linux/thread_caches.h"

int main(int argc, char** argv) {
  keelson::linux::RestartWithoutThreadCaches(argv);
  keelson::event::LoopsOfProcess loops;
  return keelson::kubelet::RunKubelet(argc, argv);
}
