// Registers a CSI driver with a kubelet, as node-driver-registrar does, for drivers that leave that to a sidecar.
// usage: csi_registrar DRIVER SOCKET REGISTRATION_DIR
#include <signal.h>

#include <cstdio>

#include "csi/local/serving/registration.h"
#include "lib/base/signals.h"
#include "lib/rpc/server.h"

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: csi_registrar DRIVER SOCKET REGISTRATION_DIR\n");
    return 2;
  }
  keelson::BlockSignals();
  keelson::csi::local::Config config;
  config.driver_name = argv[1];
  keelson::csi::local::RegistrationService service(config, argv[2]);
  const std::string path = std::string(argv[3]) + "/" + config.driver_name + "-reg.sock";
  const auto server = keelson::rpc::UnixServer::Start(path, {&service});
  if (!server) {
    std::fprintf(stderr, "%s\n", std::string(server.error().message()).c_str());
    return 1;
  }
  sigset_t end;
  ::sigemptyset(&end);
  ::sigaddset(&end, SIGTERM);
  ::sigaddset(&end, SIGINT);
  int signal = 0;
  return ::sigwait(&end, &signal) == 0 ? 0 : 1;
}
