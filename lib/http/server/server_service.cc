#include "lib/http/server/server_service.h"

namespace keelson::http {

void AddServer(ServiceGroup& group, const std::string& name, const std::string& host, uint16_t port,
               Handler handler) {
  if (host.empty()) return;
  group.Add({name, {}, [=](std::stop_token stop, ServiceGroup::Ready ready) -> Result<> {
               auto server = Server::Listen({.address = host, .port = port, .worker_threads = 1}, handler);
               if (!server) return server.error();
               ready();
               return (*server)->Run(stop, std::chrono::milliseconds(100));
             }});
}

}  // namespace keelson::http
