// FakeApi over HTTP on 127.0.0.1 in a network namespace, for tests of programs that run as processes.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/client/testing/fake_api.h"
#include "lib/linux/netns.h"

namespace keelson::client {

class FakeApiServer {
 public:
  FakeApiServer(const linux::NetNs& netns, std::shared_ptr<FakeApi> api);
  ~FakeApiServer();
  uint16_t port() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::client
