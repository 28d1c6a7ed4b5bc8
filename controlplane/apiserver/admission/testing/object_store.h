// For tests and benchmarks: a store with objects for plugins to look up.
#pragma once

#include <cstdlib>
#include <future>
#include <thread>

#include "controlplane/apiserver/admission/plugins.h"
#include "controlplane/etcd/testing/test_etcd.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"

namespace keelson::apiserver {

// A store with its own etcd.
class ObjectStore {
 public:
  ObjectStore() : store_(std::make_shared<etcd::Client>(etcd_.supervisor().client_options()), {}) {
    std::promise<void> ready;
    thread_ = std::jthread([&](std::stop_token stop) { (void)store_.Run(stop, [&] { ready.set_value(); }); });
    ready.get_future().wait();
  }
  // Stores an object, and returns when the caches have it. Aborts on failure.
  template <typename T>
  void Put(std::string_view json) {
    T object;
    if (!api::DecodeJson(json, object)) abort();
    storage::Conflict conflict;
    const std::string key = api::KeyOf(object);
    store_.Put(api::ResourceOf<T>(), key, object, 0, {}, conflict, {}).value();
    store_.Get(api::ResourceOf<T>(), key, "", {}).value();
  }
  storage::Store& get() { return store_; }

 private:
  etcd::TestEtcd etcd_;
  storage::Store store_;
  std::jthread thread_;
};

}  // namespace keelson::apiserver
