#include "kubelet/services.h"
#include "lib/event/loop.h"

int main(int argc, char** argv) {
  keelson::event::LoopsOfProcess loops;
  return keelson::kubelet::RunKubelet(argc, argv);
}
