#include "controlplane/etcd/testing/test_etcd.h"

#include <stdlib.h>

#include <cstdlib>
#include <future>

#include "lib/base/file.h"
#include "lib/base/log.h"

namespace keelson::etcd {

bool TestEtcd::Available() { return PathExists("/usr/bin/etcd") || PathExists("/usr/local/bin/etcd"); }

TestEtcd::TestEtcd() {
  const char* tmp = getenv("TMPDIR");
  std::string pattern = std::string(tmp ? tmp : "/tmp") + "/keelson-etcd-XXXXXX";
  dir_ = mkdtemp(pattern.data());
  SupervisorOptions options;
  options.data_dir = dir_;
  auto made = Supervisor::Make(options);
  if (!made) {
    log::Error("Cannot prepare an etcd", {{"err", made.error()}});
    std::abort();
  }
  supervisor_ = std::move(*made);
  std::promise<void> ready;
  thread_ = std::jthread([this, &ready](std::stop_token stop) {
    Result<> ran = supervisor_->Run(stop, [&] { ready.set_value(); });
    if (ran) return;
    log::Error("Cannot run an etcd", {{"err", ran.error()}});
    std::abort();
  });
  ready.get_future().wait();
}

TestEtcd::~TestEtcd() {
  thread_.request_stop();
  thread_.join();
  (void)RemoveTree(dir_);
}

}  // namespace keelson::etcd
