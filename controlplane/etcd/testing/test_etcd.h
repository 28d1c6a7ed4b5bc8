// For tests: an etcd that lives as long as the object.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "controlplane/etcd/supervisor.h"

namespace keelson::etcd {

class TestEtcd {
 public:
  static bool Available();

  TestEtcd();  // aborts if it does not start
  ~TestEtcd();
  Supervisor& supervisor() { return *supervisor_; }

 private:
  std::string dir_;
  std::unique_ptr<Supervisor> supervisor_;
  std::jthread thread_;
};

}  // namespace keelson::etcd
