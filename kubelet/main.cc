// kubelet: the node agent. Its flags and files become Settings (kubelet/config/settings.h), and those services.
#include "kubelet/services.h"
#include "lib/base/signals.h"
#include "lib/event/loop.h"
#include "lib/linux/thread_caches.h"

int main(int argc, char** argv) {
  keelson::linux::RestartWithoutThreadCaches(argv);
  keelson::BlockSignals();
  keelson::event::LoopsOfProcess loops;
  return keelson::kubelet::RunKubelet(argc, argv);
}
